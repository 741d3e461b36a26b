"""How long documents are: counts by powers of two, and quantiles, of any number of lengths in constant memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

# Lengths below 2**_BITS have a bin of their own; above, each power of two is cut into 2**(_BITS - 1) bins, so that a
# length is known to 1 part in 2**(_BITS - 1).
_BITS = 12
_BINS = (1 << _BITS) + (63 - _BITS) * (1 << (_BITS - 1))


@dataclasses.dataclass(frozen=True, slots=True)
class Bin:
    """Documents of ``shortest`` to ``longest`` tokens: how many there are, and how many tokens they hold."""

    shortest: int
    longest: int
    documents: int
    tokens: int


class Histogram:
    """Lengths of documents, taken up block by block."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, dtype=np.int64)
        self._tokens = np.zeros(64, dtype=np.int64)
        self.documents = self.tokens = self.longest = 0
        self.shortest: int | None = None

    def add(self, lengths: npt.NDArray[np.int64]) -> None:
        """Take up the lengths of some documents, shape [documents], none negative."""
        if not len(lengths):
            return
        digits = _binary_digits(lengths)
        shift = np.maximum(digits - _BITS, 0)
        fine = (lengths >> shift) + shift * (1 << (_BITS - 1))
        self._counts += np.bincount(fine, minlength=_BINS)
        np.add.at(self._tokens, digits, lengths)
        self.documents += len(lengths)
        self.tokens += int(lengths.sum())
        self.longest = max(self.longest, int(lengths.max()))
        self.shortest = min(self.longest if self.shortest is None else self.shortest, int(lengths.min()))

    def quantile(self, share: float) -> int:
        """A length that ``share`` of the documents do not exceed: exact below 4096, else at most 0.05 % too low."""
        rank = max(1, int(np.ceil(share * self.documents)))
        return _lower_edge(int(np.searchsorted(np.cumsum(self._counts), rank))) if self.documents else 0

    def bins(self) -> Iterator[Bin]:
        """Counts by powers of two, from the shortest documents to the longest; those of no token are their own."""
        edges = np.array([_lower_edge(number) for number in np.flatnonzero(self._counts).tolist()], dtype=np.int64)
        counts = np.zeros(64, dtype=np.int64)
        np.add.at(counts, _binary_digits(edges), self._counts[self._counts > 0])
        used = np.flatnonzero(counts)
        for digits in range(int(used[0]), int(used[-1]) + 1) if len(used) else ():
            first, last = (1 << digits >> 1, (1 << digits) - 1)
            yield Bin(first, last, int(counts[digits]), int(self._tokens[digits]))


def _binary_digits(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of 0: 0; of 1: 1; of 2 and 3: 2; exact up to 2**53."""
    return np.frexp(values)[1].astype(np.int64)


def _lower_edge(number: int) -> int:
    """The smallest length that falls into a fine bin."""
    if number < 1 << _BITS:
        return number
    shift, rest = divmod(number - (1 << _BITS), 1 << (_BITS - 1))
    return (rest + (1 << (_BITS - 1))) << (shift + 1)
