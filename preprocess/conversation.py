"""What the engine and its workers say to each other, from the first chunk to the last."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from megawrap.preprocess.messages import Chunk, Encoded, Rejected, Reply, Sizes, Written
from megawrap.preprocess.pool import Pool
from megawrap.preprocess.schedule import Schedule

REPORTS_EVERY = 0.2
"""Seconds between two reports of progress, at least."""


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. ``total_bytes`` counts the input once for each JSON key."""

    bytes: int
    total_bytes: int
    documents: int
    tokens: int


class Conversation:
    """Keeps every worker busy, and the user informed."""

    def __init__(
        self, schedule: Schedule, pool: Pool, total_bytes: int, report: Callable[[Progress], None] | None
    ) -> None:
        self._schedule = schedule
        self._pool = pool
        self._report = report
        self._progress = Progress(0, total_bytes, 0, 0)
        self._reported_at = 0.0
        self._idle = list(range(len(pool)))

    def loop(self) -> None:
        """Until every chunk is written, or a line is known to be the first bad one."""
        self._pool.greet()
        self._feed()
        while not self._schedule.done:
            for worker, reply in self._pool.replies():
                self._take(worker, reply)
            self._feed()
        if not self._schedule.rejected:
            self._tell(0.0)

    def _feed(self) -> None:
        while self._idle and (chunk := self._schedule.chunk()):
            self._pool.order(self._idle.pop(), chunk)

    def _take(self, worker: int, reply: Reply) -> None:
        if isinstance(reply, Written):
            self._schedule.written(reply.chunk)
            return
        self._idle.append(worker)
        if isinstance(reply, Encoded):
            for owner, write in self._schedule.measured(worker, reply.chunk, reply.sizes):
                self._pool.order(owner, write)
            self._advance(reply.chunk, reply.sizes)
        elif isinstance(reply, Rejected):
            self._schedule.reject(reply)

    def _advance(self, chunk: Chunk, sizes: Sizes) -> None:
        done = self._progress
        self._progress = dataclasses.replace(
            done,
            bytes=done.bytes + chunk.end - chunk.start,
            documents=done.documents + sizes.documents,
            tokens=done.tokens + sizes.tokens,
        )
        self._tell(REPORTS_EVERY)

    def _tell(self, every: float) -> None:
        now = time.monotonic()
        if self._report and now - self._reported_at >= every:
            self._reported_at = now
            self._report(self._progress)
