"""What is in the output already, so that a later run can go on from there.

One line for each chunk that has been written: where it came from, where it is, and the CRC-32 of it. Nothing is
flushed to the disk for its sake: a chunk whose bytes are not there, after a power failure say, has another CRC-32 and
is encoded again. Chunks with lines that were skipped are not noted, since those lines have to be told again.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import orjson

from megawrap.preprocess.messages import Chunk, Sizes, Target

FORMAT = 1
_NAME = "journal.jsonl"


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A chunk in the output: its place and its size under each key, and the CRC-32 of all its bytes."""

    places: tuple[Sizes, ...]
    sizes: tuple[Sizes, ...]
    checksum: int


class Finished:
    """The chunks of an earlier run. ``target`` is the size of its chunks, which this run has to cut likewise."""

    def __init__(self, target: int, entries: dict[tuple[int, ...], Entry]) -> None:
        self.target = target
        self._entries = entries
        self._files: tuple[Target, ...] = ()
        self._itemsize = 0

    @classmethod
    def of(cls, folder: Path, identity: Any) -> Finished | None:
        """What the journal in ``folder`` tells, if there is one and it is of a run with this ``identity``."""
        try:
            with (folder / _NAME).open("rb") as file:
                head = orjson.loads(next(file))
                if head["identity"] != identity or head["format"] != FORMAT:
                    return None
                return cls(head["target"], dict(_entry(line) for line in file if line.endswith(b"\n")))
        except (OSError, ValueError, LookupError, TypeError, StopIteration):
            return None

    def open(self, targets: Sequence[Target], dtype: str) -> None:
        """Tell the files that hold the chunks, and the type of their tokens."""
        self._files = tuple(targets)
        self._itemsize = np.dtype(dtype).itemsize

    def sizes(self, chunk: Chunk) -> tuple[Sizes, ...] | None:
        """How much a chunk takes, if it is in the output to the last bit; else None."""
        entry = self._entries.get(_key(chunk))
        return entry.sizes if entry and self._checksum(entry) == entry.checksum else None

    def places(self, chunk: Chunk) -> tuple[Sizes, ...]:
        """Where a chunk is that is in the output."""
        return self._entries[_key(chunk)].places

    def _checksum(self, entry: Entry) -> int:
        checksum = 0
        for files, place, size in zip(self._files, entry.places, entry.sizes, strict=True):
            for path, width, start, count in (
                (files.tokens, self._itemsize, place.tokens, size.tokens),
                (files.lengths, 4, place.sequences, size.sequences),
                (files.ends, 8, place.documents, size.documents),
            ):
                with path.open("rb", buffering=0) as file:
                    file.seek(start * width)
                    checksum = zlib.crc32(file.read(count * width), checksum)
        return checksum


class Journal:
    """Notes chunks in a folder. Leaving the ``with`` block closes it."""

    def __init__(self, folder: Path, identity: Any, target: int, *, append: bool) -> None:
        """Begin it, or go on with the one that is there.

        Raises:
            OSError: it cannot be written.
        """
        path = folder / _NAME
        if append:
            _cut_half_line(path)
        self._file = path.open("ab" if append else "wb", buffering=0)
        if not append:
            self._note({"format": FORMAT, "identity": identity, "target": target})

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._file.close()

    def add(self, chunk: Chunk, entry: Entry) -> None:
        """Note a chunk that has been written.

        Raises:
            OSError: it cannot be written.
        """
        places, sizes = ([dataclasses.astuple(size) for size in row] for row in (entry.places, entry.sizes))
        self._note({"chunk": _key(chunk), "places": places, "sizes": sizes, "crc32": entry.checksum})

    def _note(self, value: dict[str, Any]) -> None:
        self._file.write(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))


def _key(chunk: Chunk) -> tuple[int, ...]:
    return (chunk.number, chunk.source, chunk.start, chunk.end)


def _entry(line: bytes) -> tuple[tuple[int, ...], Entry]:
    value = orjson.loads(line)
    places, sizes = (tuple(Sizes(*row) for row in value[name]) for name in ("places", "sizes"))
    return tuple(value["chunk"]), Entry(places, sizes, value["crc32"])


def _cut_half_line(path: Path) -> None:
    """Take away what a killed run may have left behind the last whole line."""
    with path.open("r+b") as file:
        data = file.read()
        file.truncate(data.rfind(b"\n") + 1)
