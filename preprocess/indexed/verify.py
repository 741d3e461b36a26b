"""Every structural rule of a dataset, checked over all of its index in constant memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from megawrap.errors import Finding
from megawrap.preprocess.indexed.blocks import Advance, blocks, unheard
from megawrap.preprocess.indexed.header import Header, broken, data_size, index_size, read

EMPTY = "MW647"
"""Id of the finding that a dataset is sound and has no token."""


def verify(prefix: str, advance: Advance = unheard) -> list[Finding]:
    """What is wrong with ``prefix.bin`` and ``prefix.idx``; no error if Megatron can read them to the last token.

    Sizes must agree, lengths must not be negative, offsets must be the running sum of the lengths, and documents must
    begin at sequence 0, never go back, and end at the last sequence: then sequences cover the .bin, and documents the
    sequences, without a gap and without an overlap. Each kind of fault is told once, at its first place.
    ``advance`` is told the bytes of the .idx as they are read.
    """
    header, problems = read(prefix)
    if header is None:
        return problems
    if problems := index_size(prefix, header):
        return problems
    sequences = _Sequences(prefix, header)
    problems = [*sequences.check(advance), *_documents(prefix, header, advance)]
    if not sequences.is_broken:
        problems += data_size(prefix, sequences.end)
    return [*problems, *sequences.notes(), *(() if problems else _older(prefix))]


@dataclasses.dataclass(slots=True)
class _Sequences:
    """The walk over lengths and offsets. ``end`` is the byte of the .bin at which the last sequence ends."""

    prefix: str
    header: Header
    end: int = 0
    is_broken: bool = False
    empty: int = 0
    first_empty: int = 0

    def check(self, advance: Advance) -> Iterator[Finding]:
        path, header = Path(f"{self.prefix}.idx"), self.header
        lengths = blocks(path, "<i4", header.sequences, header.lengths_at)
        pointers = blocks(path, "<i8", header.sequences, header.pointers_at)
        start = 0
        for counts, places in zip(lengths, pointers, strict=True):
            ends = np.cumsum(counts, dtype=np.int64) * header.itemsize + self.end
            begins = ends - counts.astype(np.int64) * header.itemsize
            if counts.min() < 0:
                self.is_broken = True
                at = int(np.argmax(counts < 0))
                yield self._negative(start + at, int(counts[at]))
                return
            if not np.array_equal(begins, places):
                self.is_broken = True
                at = int(np.argmax(begins != places))
                yield self._misplaced(start + at, int(places[at]), int(begins[at]))
                return
            self._count_empty(counts == 0, start)
            self.end = int(ends[-1])
            start += len(counts)
            advance(12 * len(counts))

    def _count_empty(self, is_empty: np.ndarray, start: int) -> None:
        if count := int(np.count_nonzero(is_empty)):
            if not self.empty:
                self.first_empty = start + int(np.argmax(is_empty))
            self.empty += count

    def _negative(self, number: int, length: int) -> Finding:
        place = f"{self.prefix}.idx, byte {self.header.lengths_at + 4 * number}"
        return broken("MW644", f"{place}: sequence {number} has a negative length, {length}")

    def _misplaced(self, number: int, actual: int, expected: int) -> Finding:
        place = f"{self.prefix}.idx, byte {self.header.pointers_at + 8 * number}"
        message = f"{place}: sequence {number} begins at byte {actual}, and the one before it ends at {expected}"
        if (expected - actual) % (1 << 32) == 0:
            message += " (the same in 32 bits: whatever wrote the offsets had no more)"
        return broken("MW645", message)

    def notes(self) -> Iterator[Finding]:
        """What is allowed, and good to know."""
        if self.is_broken:
            return
        if self.end == 0:
            yield broken(EMPTY, f"{self.prefix} holds no tokens, and Megatron cannot open an empty .bin")
        elif self.empty:
            message = f"{self.prefix}: sequences without tokens: {self.empty}, the first is sequence {self.first_empty}"
            yield dataclasses.replace(broken("MW648", message), severity="warning")


def _documents(prefix: str, header: Header, advance: Advance) -> Iterator[Finding]:
    """Documents that go back, or do not reach from the first sequence to the last; those without a sequence."""
    count, before, start, empty, first_empty = header.documents + 1, 0, 0, 0, 0
    for bounds in blocks(Path(f"{prefix}.idx"), "<i8", count, header.documents_at):
        if start == 0 and bounds[0] != 0:
            yield _bound(prefix, header, 0, f"the first document begins at sequence {bounds[0]} and not at 0")
            return
        steps = np.diff(bounds, prepend=before)
        if steps.min() < 0:
            at = int(np.argmax(steps < 0))
            earlier = bounds[at - 1] if at else before
            told = f"document {start + at} begins at sequence {bounds[at]}, before the one that precedes it ({earlier})"
            yield _bound(prefix, header, start + at, told)
            return
        if start == 0:
            steps[0] = 1  # the first boundary closes no document
        if found := int(np.count_nonzero(steps == 0)):
            first_empty = first_empty if empty else start + int(np.argmax(steps == 0)) - 1
            empty += found
        before = int(bounds[-1])
        start += len(bounds)
        advance(8 * len(bounds))
    if before != header.sequences:
        told = f"the documents end at sequence {before}, and there are {header.sequences} sequences"
        yield _bound(prefix, header, count - 1, told)
    elif empty:
        message = f"{prefix}: documents without sequences: {empty}, the first is document {first_empty}"
        yield dataclasses.replace(broken("MW648", message), severity="warning")


def _bound(prefix: str, header: Header, number: int, message: str) -> Finding:
    return broken("MW646", f"{prefix}.idx, byte {header.documents_at + 8 * number}: {message}")


def _older(prefix: str) -> Iterator[Finding]:
    """An index is written when the data is complete; an older one may describe what the .bin held before."""
    data, index = (Path(f"{prefix}{suffix}").stat().st_mtime_ns for suffix in (".bin", ".idx"))
    if index < data:
        message = (
            f"{prefix}.idx was written {(data - index) / 1e9:.3g} s before {prefix}.bin: if they were not copied so, "
            "the .bin is of a later run"
        )
        yield dataclasses.replace(broken("MW649", message), severity="warning")
