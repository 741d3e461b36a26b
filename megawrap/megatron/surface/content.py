"""Content hashes of the files that make a parser."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path


def combined(root: Path, files: Iterable[str], *also: str) -> str:
    """SHA-256, as hex, over the names and the contents of ``files`` below ``root``, and over the words ``also``. A file
    that cannot be read counts as one without content of its own."""
    whole = hashlib.sha256()
    for word in also:
        whole.update(f"{word}\n".encode())
    for name in files:
        whole.update(f"{name}\n{one(root / name)}\n".encode())
    return whole.hexdigest()


def one(path: Path) -> str | None:
    """SHA-256 of one file, as hex; ``None`` when it cannot be read."""
    try:
        state = path.stat()
        return _read(path, state.st_mtime_ns, state.st_size, state.st_ino)
    except OSError:
        return None


@functools.lru_cache(maxsize=4096)
def _read(path: Path, *_state: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
