"""JSON files under the user's cache directory. A cache that cannot be read or written is no error: what it holds can
be made again."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def folder() -> Path | None:
    """``megawrap/surfaces`` below XDG_CACHE_HOME or ~/.cache; ``None`` when there is no home."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return base / "megawrap" / "surfaces" if base.is_absolute() else None


def load(key: str) -> bytes:
    """What is stored under ``key``; nothing when there is none."""
    where = folder()
    if where is None:
        return b""
    try:
        return (where / f"{key}.json").read_bytes()
    except OSError:
        return b""


def store(key: str, value: bytes) -> None:
    """Write it whole, or not at all."""
    where = folder()
    if where is None:
        return
    with contextlib.suppress(OSError):
        where.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=where, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(where / f"{key}.json")
        finally:
            Path(name).unlink(missing_ok=True)
