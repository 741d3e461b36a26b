"""Measurements as the worker writes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from megawrap.rccl_tests.records import BandwidthRecord, Measurement, busbw_factor


@pytest.fixture
def record() -> Callable[..., BandwidthRecord]:
    """A record of 8 ranks with float32 data; ``busbw`` decides the time."""

    def make(nbytes: int = 8 << 30, busbw: float = 318.0, **changes: object) -> BandwidthRecord:
        collective, ranks = str(changes.get("collective", "all_reduce")), int(str(changes.get("ranks", 8)))
        algbw = busbw / busbw_factor(collective, ranks)
        values = {
            **{"source": "torch-nccl", "group": "world", "collective": collective, "dtype": "float32"},
            **{"bytes": nbytes, "count": nbytes // 4, "seconds": nbytes / algbw / 1e9},
            **{"algbw": algbw, "busbw": busbw, "wrong": 0, "ranks": ranks},
        }
        return BandwidthRecord.from_dict({**values, **changes})

    return make


@pytest.fixture
def measured() -> Callable[..., Measurement]:
    """A measurement that asked for all_reduce of just the sizes that it has."""

    def make(*records: BandwidthRecord, **changes: object) -> Measurement:
        sizes = tuple(record.bytes for record in records)
        values = {"records": records, "collectives": ("all_reduce",), "sizes": sizes, **changes}
        return Measurement(**values)  # type: ignore[arg-type]

    return make
