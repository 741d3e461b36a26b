"""Trees whose parser is that of a bundled release, known by the content of the files that make it.

``python -m megawrap.megatron.surface.fingerprints RELEASE=DIR ...`` writes their entries in ``fingerprints.json`` anew,
out of a source tree of each release and what its own parser answers.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from megawrap.megatron.surface import content
from megawrap.megatron.surface.argument import Argument
from megawrap.megatron.surface.releases import Release, release
from megawrap.megatron.surface.surface import Surface

_DATA = Path(__file__).with_name("fingerprints.json")
_ABOUT = (
    "Bundled releases by the files that make their parser: sha256 over names and contents (content.py). "
    "`differing` are the rows of the tree's own parser that arguments.json has otherwise."
)


def match(root: Path) -> tuple[Release, Surface] | None:
    """The bundled release whose parser the tree below ``root`` has, and its surface; ``None`` when it has none of
    them."""
    for row in _rows():
        if content.combined(root, row["files"]) == row["sha256"]:
            return release(row["release"]), surface(row["release"])
    return None


@functools.cache
def surface(name: str) -> Surface:
    """The surface of a release that has a fingerprint, as its own parser gave it."""
    differing = {
        one.flags: one for row in _rows() if row["release"] == name for one in map(Argument.from_row, row["differing"])
    }
    return Surface([differing.get(one.flags, one) for one in release(name).surface.arguments])


@functools.cache
def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = orjson.loads(_DATA.read_bytes())["fingerprints"]
    return rows


def make(name: str, root: Path) -> dict[str, Any]:
    """The entry of a release, from a source tree of it.

    Raises:
        ConfigError: when there is no such release.
        NoAnswer: when the tree's parser cannot be asked.
        Unreadable: when the source does not tell which files make the parser.
        ValueError: when the tree has other flags than the release.
    """
    from megawrap.megatron.surface.ask import ask
    from megawrap.megatron.surface.source import Tree, read

    tree = Tree(root)
    read(tree, release(name).surface)
    known = {one.flags: one for one in release(name).surface.arguments}
    answered = [(row, Argument.from_row(row)) for row in ask(root)]
    if {one.flags for _, one in answered} != set(known):
        raise ValueError(f"{root} has other flags than {name}")
    differing = [row for row, one in answered if one != known[one.flags]]
    files = sorted(tree.files)
    return {"release": name, "files": files, "sha256": content.combined(root, files), "differing": differing}


def main(words: Sequence[str]) -> None:
    """Write the entries of ``RELEASE=DIR ...``; those of other releases stay."""
    made = [make(name, Path(path).absolute()) for name, _, path in (word.partition("=") for word in words)]
    names = {row["release"] for row in made}
    kept = [row for row in _rows() if row["release"] not in names]
    rows = sorted([*made, *kept], key=lambda row: str(row["release"]))
    about = orjson.dumps(_ABOUT).decode()
    lines = ",\n".join(orjson.dumps(row).decode() for row in rows)
    _DATA.write_text(f'{{"about": {about},\n"fingerprints": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
