"""Which chunk goes to which worker, and where its tokens go: plain bookkeeping, without processes or files."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.preprocess.messages import Chunk, Rejected, Sizes, Write

# Chunks handed out beyond the first one whose place is unknown. They wait in memory, so their number is bounded.
AHEAD = 64


class Schedule:
    """Chunks in, sizes in any order, places out.

    The place of a chunk is known once all chunks before it have been measured. A slow chunk holds up no worker: the
    others go on, up to ``AHEAD`` chunks, and write theirs when it is done.
    """

    def __init__(self, chunks: Iterator[Chunk], targets: int) -> None:
        self.totals = [Sizes() for _ in range(targets)]
        self.rejected: list[Rejected] = []
        self._chunks = chunks
        self._next = 0
        self._measured: dict[int, tuple[Chunk, Sizes, int]] = {}
        self._encoding: set[int] = set()
        self._unwritten: set[int] = set()
        self._exhausted = False
        self._handed_out = 0

    @property
    def done(self) -> bool:
        """Whether nothing remains to be done; with a rejected line, whether none before it can still turn up."""
        if self.rejected:
            return all(number > self.first_rejected.chunk.number for number in self._encoding)
        return self._exhausted and not self._encoding and not self._unwritten

    @property
    def first_rejected(self) -> Rejected:
        """The rejected line that comes first in the input."""
        return min(self.rejected, key=lambda rejected: rejected.chunk.number)

    def chunk(self) -> Chunk | None:
        """A chunk to encode; None when there is none now."""
        if self.rejected or self._handed_out >= self._next + AHEAD:
            return None
        chunk = next(self._chunks, None)
        if chunk is None:
            self._exhausted = True
            return None
        self._handed_out += 1
        self._encoding.add(chunk.number)
        self._unwritten.add(chunk.number)
        return chunk

    def measured(self, worker: int, chunk: Chunk, sizes: Sizes) -> list[tuple[int, Write]]:
        """A worker has encoded a chunk. What is to be written now, and by which worker."""
        self._encoding.discard(chunk.number)
        self._measured[chunk.number] = (chunk, sizes, worker)
        placed = []
        while self._next in self._measured:
            chunk, sizes, worker = self._measured.pop(self._next)
            placed.append((worker, Write(chunk, self.totals[chunk.target])))
            self.totals[chunk.target] += sizes
            self._next += 1
        return placed

    def reject(self, rejected: Rejected) -> None:
        """A chunk has a line that cannot be used: no more are handed out."""
        self._encoding.discard(rejected.chunk.number)
        self.rejected.append(rejected)

    def written(self, chunk: Chunk) -> None:
        """A chunk is in the output."""
        self._unwritten.discard(chunk.number)
