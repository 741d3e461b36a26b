"""What happens during a launch, told to whoever shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from megawrap.errors import Finding
from megawrap.launchers import Command
from megawrap.rccl_tests.verdict import Verdict
from megawrap.run.iteration import Iteration


class Observer:
    """Told of each event; does nothing. A view overrides what it shows."""

    def step_started(self, command: Command) -> None:
        """A step starts."""

    def line(self, rank: int | None, text: str) -> None:
        """A line of output; ``rank`` is ``None`` for the launcher's own."""

    def iteration(self, iteration: Iteration) -> None:
        """An iteration line of Megatron."""

    def event(self, event: Mapping[str, Any]) -> None:
        """A JSON line of a step of ours: progress, a measured bandwidth, an error."""

    def judged(self, verdict: Verdict) -> None:
        """The network has been measured and judged."""

    def warned(self, findings: Sequence[Finding]) -> None:
        """A step has ended with something worth a warning."""

    def step_ended(self, command: Command, exit_code: int) -> None:
        """A step has ended."""
