"""What an rccl-tests or nccl-tests run showed, whatever form it was printed in."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from megawrap.rccl_tests.records import BandwidthRecord, factors, format_bytes

WIDTHS = {
    **dict.fromkeys(("float", "int32", "uint32"), 4),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("double", "int64", "uint64"), 8),
}
"""Bytes of an element, by the name that the tools print; all others are one byte wide."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """One placement of one size: seconds per iteration, GB/s (decimal), wrong elements (None: not checked)."""

    seconds: float
    algbw: float
    busbw: float
    wrong: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One message size; a placement that was not run, or printed as N/A, is None."""

    bytes: int
    count: int
    type: str
    out_of_place: Placement | None = None
    in_place: Placement | None = None

    def placements(self) -> list[Placement]:
        """Those that were measured."""
        return [placement for placement in (self.out_of_place, self.in_place) if placement is not None]


@dataclass(kw_only=True, slots=True)
class Run:
    """One run of one binary.

    ``collective`` is None when nothing in the text tells it. ``complete``: it ran to its end. ``ranks`` is the
    number that the text lists, None when it lists none.
    """

    collective: str | None = None
    complete: bool = False
    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    ranks: int | None = None

    @property
    def peak_busbw(self) -> float | None:
        """Highest busbw over all sizes and placements, GB/s: single placements are often slow in healthy runs."""
        return max((placement.busbw for row in self.rows for placement in row.placements()), default=None)

    def problem(self, text: str) -> None:
        """Note a problem, once."""
        if text not in self.problems:
            self.problems.append(text)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, with the peak."""
        return {**dataclasses.asdict(self), "peak_busbw": self.peak_busbw}

    def records(self, source: str, ranks: int) -> Iterator[BandwidthRecord]:
        """The better placement of each row, as the records that the verdict judges; none without a collective."""
        for row in self.rows if self.collective else ():
            if not row.placements():
                continue
            best = max(row.placements(), key=lambda placement: placement.busbw)
            wrong = [placement.wrong for placement in row.placements() if placement.wrong is not None]
            about = {"source": source, "group": "world", "collective": self.collective, "dtype": row.type}
            numbers = {"bytes": row.bytes, "count": row.count, "ranks": ranks, **dataclasses.asdict(best)}
            yield BandwidthRecord.from_dict({**about, **numbers, "wrong": sum(wrong) if wrong else None})


def finish(run: Run) -> Run:
    """Say what the numbers themselves show: wrong data, and rates that do not belong to their times.

    A list of ranks that busbw / algbw contradicts was cut short, as people do when they publish an output.
    """
    if run.ranks and not _ranks_fit(run, run.ranks):
        run.ranks = None
    for row in run.rows:
        for placement in row.placements():
            if placement.wrong:
                run.problem(f"wrong data: {placement.wrong} elements at {format_bytes(row.bytes)}")
            if not _consistent(row, placement, run.ranks):
                rate = row.bytes / placement.seconds / 1e9
                run.problem(
                    f"algbw {placement.algbw} GB/s at {format_bytes(row.bytes)} is not size / time = {rate:.2f}"
                )
    return run


def _ranks_fit(run: Run, ranks: int) -> bool:
    measured = _bus_ratio(run.rows)
    factor = factors(ranks).get(run.collective or "")
    return measured is None or factor is None or abs(factor - measured) <= 0.01 * measured


def _bus_ratio(rows: Sequence[Row]) -> float | None:
    """busbw / algbw, the median over what was fast enough to be printed with digits to compare."""
    fast = [placement for row in rows for placement in row.placements() if placement.algbw >= 1]
    return statistics.median(placement.busbw / placement.algbw for placement in fast) if fast else None


def _consistent(row: Row, placement: Placement, ranks: int | None) -> bool:
    """algbw = size / time, to the digits printed; old all_gather and alltoall counted (n - 1) / n of the size."""
    if placement.seconds <= 0:
        return True
    rate = row.bytes / placement.seconds / 1e9
    shares = [1.0, (ranks - 1) / ranks, ranks / (ranks - 1)] if ranks and ranks > 1 else [1.0]
    return any(abs(placement.algbw - rate * share) <= 0.01 + 0.01 * placement.algbw for share in shares)


def infer_collective(rows: Sequence[Row], ranks: int | None, *, reduces: bool, root: int | None) -> str | None:
    """The only collective that fits the columns and busbw / algbw; None when several do."""
    measured = _bus_ratio(rows)
    if measured is None:
        return None
    if measured > 1.1:  # no other collective moves its data more than once
        return "all_reduce"
    if not ranks or ranks < 2:
        return None
    rooted = root is not None and root >= 0
    names = {
        (True, True): ("reduce",),
        (True, False): ("all_reduce", "reduce_scatter", "sendrecv"),
        (False, True): ("broadcast", "gather", "scatter"),
        (False, False): ("all_gather", "alltoall", "sendrecv", "broadcast"),
    }[reduces, rooted]
    fitting = [name for name in names if abs(factors(ranks)[name] - measured) < 0.01 * measured]
    return fitting[0] if len(fitting) == 1 else None
