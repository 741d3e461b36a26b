"""Read plain numbers from files of any size in constant memory, and tell how far that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Advance = Callable[[int], None]
"""Told the number of bytes that have been gone through since it was last told."""

BLOCK = 1 << 18
"""Numbers in a block: few enough to stay in a core's cache, many enough that numpy's own cost does not show."""


def unheard(_: int) -> None:
    """An ``Advance`` for whom nobody waits."""


def blocks(path: Path, dtype: str, count: int, offset: int = 0, size: int | None = None) -> Iterator[npt.NDArray[Any]]:
    """The ``count`` numbers of ``path`` from byte ``offset`` on, in arrays of shape [at most ``size``, or BLOCK].

    All arrays are one buffer: what is to be kept of one has to be copied before the next is asked for.

    Raises:
        OSError: the file cannot be read, or ends before.
    """
    buffer = np.empty(min(count, size or BLOCK), dtype=dtype)
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        while count:
            block = buffer[:count]
            _fill(file, memoryview(block).cast("B"), path)
            yield block
            count -= len(block)


def _fill(file: Any, rest: memoryview, path: Path) -> None:
    while rest:
        read = file.readinto(rest)
        if not read:
            raise OSError(0, f"{path.name} became shorter while it was read")
        rest = rest[read:]
