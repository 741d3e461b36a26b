"""The surface of a source tree, from the tree itself: known files, else its parser, else its source, else the nearest
bundled release. What was found out is cached by the content of the files that make the parser."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from megawrap.megatron.surface import cache, content, fingerprints
from megawrap.megatron.surface.argument import Argument
from megawrap.megatron.surface.interpreter import identity
from megawrap.megatron.surface.releases import Release, release
from megawrap.megatron.surface.surface import Surface

WAYS = ("parser", "source")
# Part of every cache key: raise it when probe.py or the source reader give other rows than before.
_EDITION = "1"
_ARGUMENTS = "megatron/training/arguments.py"


@dataclasses.dataclass(frozen=True)
class Correction:
    """A surface, and the way it was found: fingerprint, parser, source or bundled. ``reasons`` say why each better way
    gave nothing; ``notes`` what the source left open and where it was taken from."""

    way: str
    release: Release
    surface: Surface
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def correct(
    root: Path, nearest: Release, python: str | None = None, *, way: str | None = None, refresh: bool = False
) -> Correction:
    """The surface of the Megatron-LM below ``root``, which ``python`` will run (this Python when not given).

    With a ``way`` only that one is tried. With ``refresh`` the cache is not asked.
    """
    known = fingerprints.match(root) if way is None else None
    if known is not None:
        return Correction("fingerprint", known, known.surface)
    start = content.combined(root, [_ARGUMENTS], _EDITION, identity(python), nearest.id, way or "")
    cached = None if refresh else _cached(root, start)
    return cached or _found_out(root, start, nearest, python, WAYS if way is None else (way,))


def _cached(root: Path, start: str) -> Correction | None:
    """What is stored for trees with this content. The files that count are known only after reading the tree, so they
    are stored by themselves, under a key that needs one file."""
    try:
        files = orjson.loads(cache.load(start))["files"]
        return _correction(cache.load(content.combined(root, files, start)))
    except (LookupError, TypeError, ValueError, AttributeError):  # nothing there, or damaged
        return None


def _found_out(root: Path, start: str, nearest: Release, python: str | None, ways: Sequence[str]) -> Correction:
    from megawrap.megatron.surface.ask import NoAnswer, ask
    from megawrap.megatron.surface.source import Tree, Unreadable, read

    tree = Tree(root)
    with contextlib.suppress(Unreadable):  # whichever way is taken, this tells which files count
        read(tree, nearest.surface)
    reasons: list[str] = []
    value: dict[str, Any] = {"way": "bundled", "rows": [], "notes": []}
    for way in ways:
        try:
            if way == "parser":
                value = {"way": way, "rows": ask(root, python), "notes": []}
            else:
                value = {"way": way, **dataclasses.asdict(read(tree, nearest.surface))}
            break
        except (NoAnswer, Unreadable) as problem:
            reasons.append(f"{way}: {problem}")
    stored = orjson.dumps({**value, "release": nearest.id, "reasons": reasons})
    cache.store(start, orjson.dumps({"files": tree.files}))
    cache.store(content.combined(root, tree.files, start), stored)
    return _correction(stored)


@functools.lru_cache(maxsize=4)
def _correction(stored: bytes) -> Correction:
    value = orjson.loads(stored)
    nearest = release(value["release"])
    surface = Surface(map(Argument.from_row, value["rows"])) if value["rows"] else nearest.surface
    return Correction(value["way"], nearest, surface, tuple(value["reasons"]), tuple(value["notes"]))
