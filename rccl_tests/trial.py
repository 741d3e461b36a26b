"""What the localisation asks for and what it is told: trials, the rounds they run in, and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from megawrap.rccl_tests.records import BandwidthRecord

Kind = Literal["node", "pair", "one_way", "rails", "gpu_pairs", "group"]
"""``node``: all GPUs of one host. ``pair``: all GPUs of two hosts. ``one_way``: from the first host to the second,
timed by the receiver. ``rails``: the same GPU of two hosts, each rail a group of its own, all at once. ``gpu_pairs``:
every two GPUs of one host. ``group``: all GPUs of all hosts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One measurement: what, and between which hosts."""

    kind: Kind
    hosts: tuple[str, ...]

    @property
    def name(self) -> str:
        """For people: ``pair a-b``, ``one_way a->b``."""
        return f"{self.kind} {('->' if self.kind == 'one_way' else '-').join(self.hosts)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """Trials that share no host, and so run at the same time; ``stage`` is for people."""

    stage: str
    trials: tuple[Trial, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What came of a trial: records, or why there are none. ``absent`` are the hosts whose ranks never came.

    ``group`` of a record is ``world`` for node, pair and group; ``0->1`` (ranks) for one_way and gpu_pairs; ``rail 3``
    for rails.
    """

    trial: Trial
    records: tuple[BandwidthRecord, ...] = ()
    failure: str | None = None
    absent: tuple[str, ...] = ()
