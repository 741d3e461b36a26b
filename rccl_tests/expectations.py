"""Published marks for all_reduce, by GPU, GPUs a node and nodes; the data, with its sources, is expectations.json."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLATEAU_BYTES = 8 << 30
"""The marks are for messages of this size (8 GiB) or more."""
SMALLEST_BYTES = 512 << 20
"""Below this size (512 MiB) a healthy network may be far from its plateau: 49 to 65 % of it at 128 MiB on 16 GPUs."""
BELOW_PLATEAU = 0.95
"""Part of the plateau that healthy networks reach between the two sizes (measured 0.95 to 0.99 at 1 GiB)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """What all_reduce should reach, in busbw GB/s (decimal), with messages of ``PLATEAU_BYTES`` or more.

    ``floor`` is a published pass mark, ``typical`` the range of published healthy runs, ``theory`` the wire: one
    direction, per GPU inside a node and per node between nodes. ``nics`` is what the mark takes for granted between
    nodes. None: not published.
    """

    gpu: str
    gpus_per_node: int
    nodes: tuple[int, int]
    nics: str | None
    floor: float | None
    typical: tuple[float, float] | None
    theory: float | None
    source: str
    note: str = ""

    def floor_at(self, nbytes: int) -> float | None:
        """The pass mark for a message size in bytes; None where there is none to hold it against."""
        if self.floor is None or nbytes < SMALLEST_BYTES:
            return None
        return self.floor if nbytes >= PLATEAU_BYTES else self.floor * BELOW_PLATEAU


def expectation(gpu: str, count: int, nodes: int) -> Expectation | None:
    """The mark for ``nodes`` nodes with ``count`` GPUs each, or None.

    Only the exact number of GPUs a node counts: on a mesh, two of eight GPUs share a single link (MI300X: 48 GB/s
    where eight reach 313), so a part of a node is never held against the mark of the whole.
    """
    rows = (row for row in _table() if (row.gpu, row.gpus_per_node) == (gpu, count))
    return next((row for row in rows if row.nodes[0] <= nodes <= row.nodes[1]), None)


@functools.cache
def _table() -> tuple[Expectation, ...]:
    rows = json.loads(Path(__file__).with_name("expectations.json").read_text(encoding="utf-8"))
    return tuple(Expectation(**{name: _frozen(value) for name, value in row.items()}) for row in rows)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
