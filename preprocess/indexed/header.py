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

    def section(self, byte: int) -> str:
        """What stands at a byte of the .idx, for people: ``the offsets, sequence 12``."""
        if byte < self.pointers_at:
            return f"the lengths, sequence {(byte - self.lengths_at) // 4}"
        if byte < self.documents_at:
            return f"the offsets, sequence {(byte - self.pointers_at) // 8}"
        return f"the documents, document {(byte - self.documents_at) // 8}"

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
    return _parse(path, head)


def _parse(path: Path, head: bytes) -> tuple[Header | None, list[Finding]]:
    if not head.startswith(MAGIC[: len(head)]) or not head:
        what = "it is empty" if not head else "it does not begin as one does"
        return None, [broken("MW641", f"{path} is not the index of a Megatron dataset: {what}")]
    if len(head) < SIZE:
        return None, [broken("MW641", f"{path} is cut off in its header: {len(head)} of {SIZE} bytes")]
    _, version, code, sequences, documents = _LAYOUT.unpack(head)
    problems = []
    if version != VERSION:
        problems.append(broken("MW641", f"{path}, byte 9: version {version}, and Megatron reads version {VERSION}"))
    if code not in DTYPES:
        message = f"{path}, byte 17: {code} is the code of no type, and 1 to {len(DTYPES)} are"
        problems.append(broken("MW641", message))
    if documents < 1:
        message = f"{path}, byte 26: no document boundary, and even a dataset without documents has one"
        problems.append(broken("MW641", message))
    return (None, problems) if problems else (Header(DTYPES[code], sequences, documents - 1), [])


def has_modes(prefix: str, header: Header) -> bool:
    """Whether the .idx, whose size is right, holds the modes of a multimodal dataset."""
    return Path(f"{prefix}.idx").stat().st_size > header.size


def check(prefix: str) -> list[Finding]:
    """What the header and the two file sizes show to be wrong with a dataset. Reads 42 bytes, whatever its size."""
    header, problems = read(prefix)
    if header is None:
        return problems
    return index_size(prefix, header) or _data_size(prefix, header)


def index_size(prefix: str, header: Header) -> list[Finding]:
    """What is wrong with the size of the .idx; it has modes or not."""
    actual = Path(f"{prefix}.idx").stat().st_size
    if actual in (header.size, header.size + header.sequences):
        return []
    counts = f"{header.sequences} sequences and {header.documents} documents"
    message = f"{prefix}.idx has {actual} bytes, and an index of {counts} has {header.size}: "
    if actual < header.size:
        message += f"it is cut off in {header.section(actual)}"
    else:
        message += f"{actual - header.size} bytes stand behind its end, and modes of sequences are {header.sequences}"
    return [broken("MW642", message)]


def _data_size(prefix: str, header: Header) -> list[Finding]:
    return data_size(prefix, _end_of_data(prefix, header))


def data_size(prefix: str, expected: int) -> list[Finding]:
    """What is wrong with the .bin, of which the index describes ``expected`` bytes, by its size."""
    path = Path(f"{prefix}.bin")
    try:
        actual = path.stat().st_size
    except FileNotFoundError:
        return [broken("MW640", f"{path}: there is no such file")]
    except OSError as error:
        return [broken("MW640", f"{path} cannot be read: {error.strerror}")]
    if actual == expected:
        return []
    difference = f"{expected - actual} are missing" if actual < expected else f"{actual - expected} are too many"
    message = f"{path} has {actual} bytes, and its index describes {expected}: {difference}"
    return [broken("MW643", f"{message}; the two are no pair, or one is not complete")]


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
