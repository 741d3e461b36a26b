"""The head of an .idx file, and the checks that need nothing else: no numpy, a few microseconds.

The format, all little-endian: 9 bytes magic, u64 version 1, u8 type code, u64 number of sequences S, u64 number of
documents plus one D; int32[S] lengths in tokens; int64[S] offsets into the .bin in bytes; int64[D] documents as the
sequence each begins at, with S at the end; for multimodal data int8[S] modes. The .bin holds nothing but ids.

Source: Megatron-LM core_v0.19.0 megatron/core/datasets/indexed_dataset.py.
"""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

from megawrap.errors import Finding

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
_LAYOUT = struct.Struct("<9sQBQQ")
SIZE = _LAYOUT.size

DTYPES = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f8", 7: "<f4", 8: "<u2"}
"""Type code to the numpy name of the type that ids are stored in."""


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """What the first 34 bytes say. ``dtype`` is a value of ``DTYPES``."""

    dtype: str
    sequences: int
    documents: int

    @property
    def itemsize(self) -> int:
        """Bytes an id takes."""
        return int(self.dtype[2])

    @property
    def lengths_at(self) -> int:
        """Byte of the .idx at which the lengths begin."""
        return SIZE

    @property
    def pointers_at(self) -> int:
        """Byte of the .idx at which the offsets begin."""
        return SIZE + 4 * self.sequences

    @property
    def documents_at(self) -> int:
        """Byte of the .idx at which the documents begin."""
        return SIZE + 12 * self.sequences

    @property
    def size(self) -> int:
        """Bytes of the whole .idx, without modes."""
        return SIZE + 12 * self.sequences + 8 * (self.documents + 1)

    def pack(self) -> bytes:
        """The bytes of the header."""
        code = next(code for code, dtype in DTYPES.items() if dtype == self.dtype)
        return _LAYOUT.pack(MAGIC, VERSION, code, self.sequences, self.documents + 1)


def read(prefix: str) -> tuple[Header | None, list[Finding]]:
    """The header of ``prefix.idx``, or None and why there is none."""
    path = Path(f"{prefix}.idx")
    try:
        with path.open("rb") as file:
            head = file.read(SIZE)
    except FileNotFoundError:
        return None, [broken("MW640", f"{path}: there is no such file")]
    except OSError as error:
        return None, [broken("MW640", f"{path} cannot be read: {error.strerror}")]
    if len(head) < SIZE or not head.startswith(MAGIC):
        return None, [broken("MW641", f"{path} is not the index of a Megatron dataset: it does not begin as one does")]
    _, version, code, sequences, documents = _LAYOUT.unpack(head)
    if version != VERSION or code not in DTYPES or documents < 1:
        told = f"version {version}, type code {code}, {documents} document boundaries"
        return None, [broken("MW641", f"{path} has a header that Megatron does not read: {told}")]
    return Header(DTYPES[code], sequences, documents - 1), []


def check(prefix: str) -> list[Finding]:
    """What the header and the two file sizes show to be wrong with a dataset. Reads 42 bytes, whatever its size."""
    header, problems = read(prefix)
    if header is None:
        return problems
    return _index_size(prefix, header) or _data_size(prefix, header)


def _index_size(prefix: str, header: Header) -> list[Finding]:
    actual = Path(f"{prefix}.idx").stat().st_size
    if actual in (header.size, header.size + header.sequences):
        return []
    counts = f"{header.sequences} sequences and {header.documents} documents"
    return [
        broken("MW642", f"{prefix}.idx has {actual} bytes, and an index of {counts} has {header.size}: it is cut off")
    ]


def _data_size(prefix: str, header: Header) -> list[Finding]:
    path = Path(f"{prefix}.bin")
    try:
        actual = path.stat().st_size
        expected = _end_of_data(prefix, header)
    except FileNotFoundError:
        return [broken("MW640", f"{path}: there is no such file")]
    if actual == expected:
        return []
    return [broken("MW643", f"{path} has {actual} bytes, and its index describes {expected}: they are no pair")]


def _end_of_data(prefix: str, header: Header) -> int:
    """Where the last sequence ends in the .bin, in bytes."""
    if header.sequences == 0:
        return 0
    with Path(f"{prefix}.idx").open("rb") as file:
        file.seek(header.pointers_at - 4)
        (length,) = struct.unpack("<i", file.read(4))
        file.seek(header.documents_at - 8)
        (pointer,) = struct.unpack("<q", file.read(8))
    return int(pointer + length * header.itemsize)


def broken(id: str, message: str) -> Finding:
    """A finding about a dataset."""
    return Finding(id=id, message=message, keys=("--data-path",))
