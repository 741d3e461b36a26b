"""Is the measured network fit to train on? A word, the numbers it rests on, and findings (MW404 to MW409)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from megawrap.errors import Finding, Severity
from megawrap.rccl_tests.expectations import SMALLEST_BYTES, Expectation
from megawrap.rccl_tests.records import BandwidthRecord, Measurement, format_bytes

Word = Literal["pass", "warn", "fail", "measured", "unknown"]
_COMPARED = "all_reduce"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """``pass``: right data, at or above the mark; ``warn``: right data, but see the findings; ``fail``: not fit;
    ``measured``: right data, and no mark to hold it against; ``unknown``: nothing was measured.

    ``peak_busbw`` is the highest busbw in GB/s of the collective that is compared, or of all if that was not measured.
    """

    word: Word
    peak_busbw: float | None
    says: str
    findings: tuple[Finding, ...] = ()


def judge(measurement: Measurement, expectation: Expectation | None = None, nics: str | None = None) -> Verdict:
    """Judge a measurement.

    ``nics`` is what the nodes are known to have (``8x400G``): a value below a mark between nodes is an error only when
    the mark's NICs are known to be there, otherwise a warning.
    """
    findings = (*_wrong_data(measurement.records), *_incomplete(measurement))
    speed, says = _speed(measurement.records, expectation, nics)
    findings += speed
    return Verdict(
        word=_word(measurement.records, findings, compared=bool(says)),
        peak_busbw=_peak(measurement.records),
        says=says or _without_mark(measurement.records, expectation),
        findings=findings,
    )


def _word(records: Sequence[BandwidthRecord], findings: Sequence[Finding], *, compared: bool) -> Word:
    if not records:
        return "unknown"
    if any(finding.severity == "error" for finding in findings):
        return "fail"
    if findings:
        return "warn"
    return "pass" if compared else "measured"


def _wrong_data(records: Sequence[BandwidthRecord]) -> Iterator[Finding]:
    for record in records:
        if record.wrong:
            what = f"{record.collective} of {format_bytes(record.bytes)} ({record.group})"
            yield Finding(id="MW404", message=f"the network corrupts data: {what} gave {record.wrong} wrong elements")


def _incomplete(measurement: Measurement) -> Iterator[Finding]:
    if not measurement.records:
        yield Finding(id="MW406", message="nothing was measured")
    unsupported = {
        (problem.get("collective"), problem.get("bytes")): str(problem["problem"])
        for problem in measurement.problems
        if str(problem["problem"]).startswith("unsupported")
    }
    for name, size in itertools.product(measurement.collectives, measurement.sizes):
        if any(_is_of(record, name, size) for record in measurement.records):
            continue
        what = f"{name} of {format_bytes(size)}"
        if reason := unsupported.get((name, size)):
            yield Finding(id="MW408", severity="warning", message=f"{what} was not measured: {reason}")
        else:
            yield Finding(id="MW406", message=f"{what} was asked for and not measured")


def _is_of(record: BandwidthRecord, collective: str, size: int) -> bool:
    """A size is rounded to whole elements, the same number on each rank."""
    element = record.bytes // record.count if record.count else 1
    return record.collective == collective and abs(size - record.bytes) < record.ranks * element


def _compared(records: Sequence[BandwidthRecord]) -> list[BandwidthRecord]:
    return [record for record in records if record.collective == _COMPARED and record.group == "world"]


def _peak(records: Sequence[BandwidthRecord]) -> float | None:
    return max((record.busbw for record in _compared(records) or records), default=None)


def _speed(
    records: Sequence[BandwidthRecord], expectation: Expectation | None, nics: str | None
) -> tuple[tuple[Finding, ...], str]:
    """Findings on the speed and a sentence on the comparison; an empty one when there was nothing to compare."""
    if expectation is None:
        return (), ""
    marked = [(record, floor) for record in _compared(records) if (floor := expectation.floor_at(record.bytes))]
    if not marked:
        return (), ""
    # The best size decides: single outliers are common in healthy runs, and a slow link slows every size.
    record, floor = max(marked, key=lambda pair: pair[0].busbw / pair[1])
    mark = f"pass mark {floor:.1f}" + (f" with {expectation.nics} a node" if expectation.nics else "")
    says = f"busbw {record.busbw:.1f} GB/s at {format_bytes(record.bytes)}, {mark} ({expectation.source})"
    if record.busbw >= floor:
        return (), says
    severity = _severity(record.busbw, expectation, nics)
    return (Finding(id="MW409", severity=severity, message=f"{_COMPARED} is slow: {says}"),), says


def _severity(busbw: float, expectation: Expectation, nics: str | None) -> Severity:
    healthy = expectation.typical is not None and busbw >= expectation.typical[0]
    return "warning" if healthy or (expectation.nics is not None and expectation.nics != nics) else "error"


def _without_mark(records: Sequence[BandwidthRecord], expectation: Expectation | None) -> str:
    if not records:
        return "not measured"
    largest = max((record.bytes for record in _compared(records)), default=0)
    if expectation is not None and expectation.floor is not None and largest < SMALLEST_BYTES:
        return f"measured, but no {_COMPARED} of {format_bytes(SMALLEST_BYTES)} or more to hold against the pass mark"
    return "measured, no expectation"
