"""Megatron's iteration line: fields by name, in any order, of any release."""

from __future__ import annotations

import dataclasses
import re

_HEAD = re.compile(r"iteration\s+(\d+)/\s*(\d+)\s*\|")
_FIELDS = {
    "consumed samples": "consumed_samples",
    "elapsed time per iteration (ms)": "elapsed_ms",
    "learning rate": "learning_rate",
    "global batch size": "global_batch_size",
    "lm loss": "lm_loss",
    "grad norm": "grad_norm",
    "loss scale": "loss_scale",
    "throughput per GPU (TFLOP/s/GPU)": "tflops_per_gpu",
    "number of skipped iterations": "skipped_iterations",
    "number of nan iterations": "nan_iterations",
}
_WHOLE = {"consumed_samples", "global_batch_size", "skipped_iterations", "nan_iterations"}


@dataclasses.dataclass(frozen=True)
class Iteration:
    """One logged iteration. A field that the line lacks is ``None``: Megatron leaves ``lm loss`` out when it is NaN."""

    iteration: int
    total: int
    consumed_samples: int | None = None
    elapsed_ms: float | None = None
    learning_rate: float | None = None
    global_batch_size: int | None = None
    lm_loss: float | None = None
    grad_norm: float | None = None
    loss_scale: float | None = None
    tflops_per_gpu: float | None = None
    skipped_iterations: int | None = None
    nan_iterations: int | None = None

    def tokens_per_second(self, seq_length: int) -> float | None:
        """Tokens that the whole world takes in per second."""
        if not self.elapsed_ms or not self.global_batch_size:
            return None
        return self.global_batch_size * seq_length * 1000.0 / self.elapsed_ms


def parse_iteration(line: str) -> Iteration | None:
    """The iteration that ``line`` reports, or ``None``.

    Format: Megatron-LM megatron/training/training.py training_log, releases 0.9 to main and ROCm's fork.
    """
    head = _HEAD.search(line)
    if head is None:
        return None
    values: dict[str, int | float] = {}
    for part in line[head.end() :].split("|"):
        name, _, word = part.rpartition(":")
        field = _FIELDS.get(name.strip())
        if field is not None:
            values[field] = int(float(word)) if field in _WHOLE else float(word)
    return Iteration(int(head[1]), int(head[2]), **values)  # type: ignore[arg-type]
