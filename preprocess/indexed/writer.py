"""Write an .idx from files of plain numbers, block by block: memory does not grow with the dataset."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import BinaryIO

import numpy as np

from megawrap.preprocess.indexed.header import Header

_BLOCK = 1 << 20


def write_index(path: Path, dtype: str, lengths: Path, ends: Path, modes: Path | None = None) -> Header:
    """Write the index of a dataset and flush it to the disk.

    ``dtype`` is a value of ``header.DTYPES``. ``lengths`` holds int32[sequences], the tokens of each sequence, and
    ``ends`` int64[documents], the number of sequences up to the end of each document; ``modes``, of a multimodal
    dataset, int8[sequences].

    Raises:
        OSError: a file cannot be read or written.
    """
    header = Header(dtype, lengths.stat().st_size // 4, ends.stat().st_size // 8)
    with path.open("wb") as target:
        target.write(header.pack())
        _copy(lengths, target)
        _pointers(lengths, header.itemsize, target)
        target.write(bytes(8))
        _copy(ends, target)
        if modes is not None:
            _copy(modes, target)
        target.flush()
        os.fsync(target.fileno())
    return header


def _copy(source: Path, target: BinaryIO) -> None:
    with source.open("rb") as file:
        shutil.copyfileobj(file, target, 1 << 20)


def _pointers(lengths: Path, itemsize: int, target: BinaryIO) -> None:
    """Offsets in bytes: the running sum of the lengths that came before."""
    offset = 0
    with lengths.open("rb") as file:
        while block := file.read(4 * _BLOCK):
            sizes = np.frombuffer(block, dtype="<i4").astype("<i8") * itemsize
            ends = np.cumsum(sizes, dtype="<i8") + offset
            target.write((ends - sizes).tobytes())
            offset = int(ends[-1])
