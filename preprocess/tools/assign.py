"""Which part of a split each document goes to: shares by the document, contiguous or drawn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

STRATUM = 1 << 16
"""Documents that are drawn together. Each stratum holds every part's share but for one document, and the whole exactly.
It bounds the memory; another number would give other parts for the same seed."""


def quotas(shares: Sequence[Fraction], documents: int) -> list[int]:
    """Documents of each part: where the running sums of the shares, rounded, cut the whole."""
    total, running = sum(shares), Fraction(0)
    cuts = [0]
    for share in shares:
        running += share
        cuts.append(int(running / total * documents + Fraction(1, 2)))
    return [end - start for start, end in itertools.pairwise(cuts)]


class Assigner:
    """Deals out documents from the first to the last, until each part has its quota."""

    def __init__(self, quotas: Sequence[int], seed: int | None) -> None:
        """``seed`` None: the first documents to the first part, and so on; else drawn, the same for the same seed.

        Only the raw numbers of the generator are used, which numpy does not change between its versions.
        """
        self._left = list(quotas)
        self._raw = None if seed is None else np.random.PCG64(seed)

    def next(self, count: int) -> npt.NDArray[np.intp]:
        """The parts of the next ``count`` documents, shape [count]."""
        if self._raw is None:
            return self._labels(self._first(count))
        labels = self._labels(self._fair(count, int(self._raw.random_raw()) % sum(self._left)))
        return labels[np.argsort(self._raw.random_raw(count), kind="stable")]

    def _labels(self, counts: Sequence[int]) -> npt.NDArray[np.intp]:
        self._left = [left - count for left, count in zip(self._left, counts, strict=True)]
        return np.repeat(np.arange(len(counts)), counts)

    def _first(self, count: int) -> list[int]:
        counts = []
        for left in self._left:
            counts.append(min(left, count))
            count -= counts[-1]
        return counts

    def _fair(self, count: int, offset: int) -> list[int]:
        """Each part's share of ``count``, rounded so that the sum is right and the expectation exact: the fractions
        are laid behind each other, and those that a comb of whole numbers, shifted by ``offset``, hits are rounded up.
        """
        whole = sum(self._left)
        counts, before = [], offset
        for left in self._left:
            share, rest = divmod(left * count, whole)
            counts.append(share + (before + rest) // whole - before // whole)
            before += rest
        return counts
