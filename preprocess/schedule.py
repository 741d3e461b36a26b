"""Which chunk goes to which worker, and where its tokens go: plain bookkeeping, without processes or files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from megawrap.preprocess.journal import Finished
from megawrap.preprocess.messages import Chunk, Encoded, Rejected, Sizes

# Chunks handed out beyond the first one whose place is unknown. They wait in memory, so their number is bounded.
AHEAD = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """A chunk whose place has become known. ``worker`` has it; None: it is in the output since an earlier run.

    ``first_line`` is the number of its first line in its source, counted from 1.
    """

    chunk: Chunk
    worker: int | None
    places: tuple[Sizes, ...]
    sizes: tuple[Sizes, ...]
    rejected: tuple[Rejected, ...]
    first_line: int


class Schedule:
    """Chunks in, sizes in any order, places out.

    The place of a chunk is known once all chunks before it have been measured. A slow chunk holds up no worker: the
    others go on, up to ``AHEAD`` chunks, and write theirs when it is done.
    """

    def __init__(self, chunks: Iterator[Chunk], targets: int, finished: Finished | None = None) -> None:
        self.totals = (Sizes(),) * targets
        self._chunks = chunks
        self._finished = finished
        self._next = 0
        self._measured: dict[int, tuple[Encoded, int | None]] = {}
        self._unwritten: set[int] = set()
        self._exhausted = False
        self._handed_out = 0
        self._source = 0
        self._lines_before = 0

    @property
    def done(self) -> bool:
        """Whether nothing remains to be done."""
        return self._exhausted and not self._measured and not self._unwritten

    def chunk(self) -> Chunk | Encoded | None:
        """A chunk to encode, or the sizes of one that an earlier run has finished; None when there is none now."""
        if self._handed_out >= self._next + AHEAD:
            return None
        chunk = next(self._chunks, None)
        if chunk is None:
            self._exhausted = True
            return None
        self._handed_out += 1
        if self._finished and (sizes := self._finished.sizes(chunk)):
            return Encoded(chunk.bare(), sizes)
        self._unwritten.add(chunk.number)
        return chunk

    def measured(self, worker: int | None, encoded: Encoded) -> list[Placed]:
        """A worker has encoded a chunk, or none had to. Which chunks have found their place by it, in their order."""
        self._measured[encoded.chunk.number] = (encoded, worker)
        placed = []
        while self._next in self._measured:
            placed.append(self._place(*self._measured.pop(self._next)))
            self._next += 1
        return placed

    def _place(self, encoded: Encoded, worker: int | None) -> Placed:
        lines = self.totals[0].lines
        if encoded.chunk.source != self._source:
            self._source, self._lines_before = encoded.chunk.source, lines
        places = self.totals
        self.totals = tuple(place + size for place, size in zip(places, encoded.sizes, strict=True))
        first_line = lines - self._lines_before + 1
        return Placed(encoded.chunk, worker, places, encoded.sizes, encoded.rejected, first_line)

    def written(self, chunk: Chunk) -> None:
        """A chunk is in the output."""
        self._unwritten.discard(chunk.number)
