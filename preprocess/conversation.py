"""What the engine and its workers say to each other, from the first chunk to the last."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Callable

from megawrap.errors import Finding, RunError
from megawrap.preprocess.journal import Entry, Finished, Journal
from megawrap.preprocess.messages import Encoded, Reply, Write, Written
from megawrap.preprocess.pool import Pool
from megawrap.preprocess.rejects import Rejects
from megawrap.preprocess.schedule import Placed, Schedule

REPORTS_EVERY = 0.2
"""Seconds between two reports of progress, at least."""


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: bytes of the input's files, documents and tokens of all outputs, lines that were skipped.

    ``total_bytes`` is 0 for standard input. ``resumed_bytes`` were done by an earlier run.
    """

    bytes: int
    total_bytes: int
    documents: int = 0
    tokens: int = 0
    rejected: int = 0
    resumed_bytes: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Records:
    """What is written down beside the tokens."""

    journal: Journal
    finished: Finished | None
    rejects: Rejects


class Conversation:
    """Keeps every worker busy, and the user informed."""

    def __init__(
        self,
        schedule: Schedule,
        pool: Pool,
        records: Records,
        total_bytes: int,
        report: Callable[[Progress], None] | None,
    ) -> None:
        self._schedule = schedule
        self._pool = pool
        self._records = records
        self._report = report
        self._progress = Progress(0, total_bytes)
        self._reported_at = 0.0
        self._idle = list(range(len(pool)))
        self._retiring: set[int] = set()
        self._owes: collections.Counter[int] = collections.Counter()
        self._placed: dict[int, Placed] = {}

    def loop(self) -> None:
        """Until every chunk is written.

        Raises:
            RunError: more lines than may be cannot be used, or a worker has died or cannot go on.
            OSError: a record cannot be written.
        """
        self._feed()
        while not self._schedule.done:
            for worker, reply in self._pool.replies():
                self._take(worker, reply)
            self._feed()
        self._tell(0.0)

    def _feed(self) -> None:
        while self._idle and (chunk := self._schedule.chunk()):
            if isinstance(chunk, Encoded):
                self._measured(None, chunk)
            else:
                self._pool.order(self._idle.pop(), chunk)

    def _take(self, worker: int, reply: Reply) -> None:
        if isinstance(reply, Written):
            self._schedule.written(reply.chunk)
            self._note(reply)
            self._owes[worker] -= 1
        elif isinstance(reply, Encoded):
            self._owes[worker] += 1
            (self._retiring.add if reply.full else self._idle.append)(worker)
            self._measured(worker, reply)
        if worker in self._retiring and not self._owes[worker]:
            self._retiring.remove(worker)
            self._pool.replace(worker)
            self._idle.append(worker)

    def _measured(self, worker: int | None, encoded: Encoded) -> None:
        for placed in self._schedule.measured(worker, encoded):
            self._records.rejects.take(placed)
            if placed.worker is None:
                self._check(placed)
            else:
                self._placed[placed.chunk.number] = placed
                self._pool.order(placed.worker, Write(placed.chunk, placed.places))
        self._advance(encoded, resumed=worker is None)

    def _check(self, placed: Placed) -> None:
        """What an earlier run has written must be where this run would write it."""
        assert self._records.finished is not None
        if self._records.finished.places(placed.chunk) != placed.places:
            message = "what an earlier run left does not fit together; begin again without --resume"
            raise RunError(Finding(id="MW624", message=message, keys=("--resume",)))

    def _note(self, written: Written) -> None:
        placed = self._placed.pop(written.chunk.number)
        if not placed.rejected:
            self._records.journal.add(written.chunk, Entry(placed.places, placed.sizes, written.checksum))

    def _advance(self, encoded: Encoded, *, resumed: bool) -> None:
        done, cost = self._progress, encoded.chunk.cost
        self._progress = dataclasses.replace(
            done,
            bytes=done.bytes + cost,
            documents=done.documents + sum(sizes.documents for sizes in encoded.sizes),
            tokens=done.tokens + sum(sizes.tokens for sizes in encoded.sizes),
            rejected=done.rejected + len(encoded.rejected),
            resumed_bytes=done.resumed_bytes + (cost if resumed else 0),
        )
        self._tell(REPORTS_EVERY)

    def _tell(self, every: float) -> None:
        now = time.monotonic()
        if self._report and now - self._reported_at >= every:
            self._reported_at = now
            self._report(self._progress)
