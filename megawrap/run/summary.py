"""What a finished run came to."""

from __future__ import annotations

import dataclasses
import statistics
from pathlib import Path
from typing import Any

from megawrap.run.launch import Outcome


@dataclasses.dataclass(frozen=True)
class Summary:
    """A run in a few numbers. ``tokens_per_second`` is the median over the iterations, the first left out: it pays for
    the start-up."""

    directory: Path
    iterations: int
    losses: tuple[float, ...]
    tokens_per_second: float | None
    seconds: float
    checkpoints: Path | None

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, documented in docs/json.md."""
        return {
            "run_dir": str(self.directory),
            "iterations": self.iterations,
            "first_loss": self.losses[0] if self.losses else None,
            "last_loss": self.losses[-1] if self.losses else None,
            "tokens_per_second": self.tokens_per_second,
            "seconds": self.seconds,
            "checkpoints": str(self.checkpoints) if self.checkpoints else None,
        }


def summarise(outcome: Outcome, seq_length: int) -> Summary:
    """Sum up a run of sequences of ``seq_length`` tokens."""
    rates = [rate for one in outcome.iterations[1:] if (rate := one.tokens_per_second(seq_length)) is not None]
    checkpoints = outcome.directory / "checkpoints"
    return Summary(
        directory=outcome.directory,
        iterations=outcome.iterations[-1].iteration if outcome.iterations else 0,
        losses=tuple(one.lm_loss for one in outcome.iterations if one.lm_loss is not None),
        tokens_per_second=statistics.median(rates) if rates else None,
        seconds=outcome.seconds,
        checkpoints=checkpoints if (checkpoints / "latest_checkpointed_iteration.txt").is_file() else None,
    )
