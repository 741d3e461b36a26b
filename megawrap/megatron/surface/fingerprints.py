"""Trees whose parser is that of a bundled release, known by the content of the files that make it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import orjson

from megawrap.megatron.surface import content
from megawrap.megatron.surface.releases import Release, release

DATA = Path(__file__).with_name("fingerprints.json")


def match(root: Path) -> Release | None:
    """The bundled release whose parser the tree below ``root`` has; ``None`` when it has none of them."""
    found = (row["release"] for row in rows() if content.combined(root, row["files"]) == row["sha256"])
    name = next(found, None)
    return None if name is None else release(name)


@functools.cache
def rows() -> list[dict[str, Any]]:
    """Release, files and hash of each."""
    found: list[dict[str, Any]] = orjson.loads(DATA.read_bytes())["fingerprints"]
    return found
