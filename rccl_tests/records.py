"""The record that every bandwidth measurement ends in, its units, and the reader of what ``worker.py`` wrote.

``worker.py`` stands alone on a node and so repeats the factor table and the size syntax; a test keeps them equal.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from megawrap.errors import ConfigError, Finding, PreflightError

_FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    **dict.fromkeys(("all_gather", "reduce_scatter", "alltoall", "alltoallv"), lambda n: (n - 1) / n),
    **dict.fromkeys(("gather", "scatter"), lambda n: (n - 1) / n),
    **dict.fromkeys(("broadcast", "reduce", "sendrecv", "hypercube", "one_way"), lambda n: 1.0),
}


def busbw_factor(collective: str, ranks: int) -> float:
    """busbw / algbw of a collective between ``ranks`` ranks (nccl-tests, doc/PERFORMANCE.md).

    algbw is bytes / seconds with the bytes of the whole buffer: for all_gather and reduce_scatter ranks x shard.

    Raises:
        KeyError: for a collective that has no factor.
    """
    return _FACTORS[collective](ranks)


def factors(ranks: int) -> dict[str, float]:
    """The factor of every known collective."""
    return {collective: factor(ranks) for collective, factor in _FACTORS.items()}


def parse_bytes(text: str) -> int:
    """Bytes of ``64M``, ``8G``, ``1GiB`` or ``512``: K, M, G and T are binary, as in nccl-tests.

    Raises:
        ConfigError: MW402, when the text is no size above 0.
    """
    found = re.fullmatch(r"([0-9]+)([KMGT]?)(?:I?B)?", text.strip().upper())
    if not found or int(found[1]) == 0:
        message = f"{text!r} is not a size such as 1M, 64M or 8G"
        raise ConfigError(Finding(id="MW402", message=message, nearest=("1M", "64M", "8G")))
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[found[2]]


def format_bytes(nbytes: int) -> str:
    """``64M`` for 67108864: the largest binary unit that divides it, so that ``parse_bytes`` gives it back."""
    units = (unit for unit in ((40, "T"), (30, "G"), (20, "M"), (10, "K")) if nbytes and nbytes % (1 << unit[0]) == 0)
    shift, letter = next(units, (0, ""))
    return f"{nbytes >> shift}{letter}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BandwidthRecord:
    """One measured message size.

    ``bytes`` and ``count`` are of the whole buffer, ``seconds`` is per iteration, ``algbw`` and ``busbw`` are decimal
    GB/s. ``source`` says what measured (``torch-gloo``, ``rccl-tests``), ``group`` between whom (``world``, ``0->1``).
    ``wrong`` is the number of wrong elements over all ranks, None when the data was not checked.
    """

    source: str
    group: str
    collective: str
    bytes: int
    count: int
    dtype: str
    seconds: float
    algbw: float
    busbw: float
    wrong: int | None
    ranks: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BandwidthRecord:
        """From the JSON form; keys that are not of a record (``event``) are left out.

        Raises:
            KeyError, TypeError, ValueError: when a value is missing or not of its type.
        """
        read: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(("source", "group", "collective", "dtype"), str),
            **dict.fromkeys(("bytes", "count", "ranks"), int),
            **dict.fromkeys(("seconds", "algbw", "busbw"), float),
            "wrong": lambda wrong: None if wrong is None else int(wrong),
        }
        return cls(**{name: convert(values[name]) for name, convert in read.items()})

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """A whole measurement: what was asked, what came of it, and what went wrong on the way.

    ``sizes`` in bytes and ``collectives`` are what was asked for; a problem is a mapping with ``problem`` (text) and
    the ``collective``, ``group`` and ``bytes`` that it concerns.
    """

    records: tuple[BandwidthRecord, ...]
    collectives: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    problems: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Measurement:
        """From the content of ``worker.py --output``; the errors of ``BandwidthRecord.from_dict``."""
        meta = values["meta"]
        return cls(
            records=tuple(map(BandwidthRecord.from_dict, values["records"])),
            collectives=tuple(meta["collectives"]),
            sizes=tuple(meta["sizes"]),
            hosts=tuple(meta["hosts"]),
            problems=tuple(values["problems"]),
        )


def read_measurement(path: Path) -> Measurement:
    """What ``worker.py --output`` wrote.

    Raises:
        PreflightError: MW407, when there is no such file or it is not of that form.
    """
    try:
        return Measurement.from_dict(json.loads(path.read_bytes()))
    except OSError as error:
        reason = error.strerror or str(error)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"not written by worker.py ({type(error).__name__}: {error})"
    raise PreflightError(Finding(id="MW407", message=f"no bandwidth result in {path}: {reason}"))


def read_events(lines: Sequence[str]) -> list[dict[str, Any]]:
    """The JSON events among the lines that the ranks wrote; everything else that they print is passed over."""
    found = []
    for line in lines:
        if line.startswith('{"event"'):
            try:
                found.append(json.loads(line))
            except ValueError:  # a line that was cut when the rank died
                continue
    return found
