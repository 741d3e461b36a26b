"""Everything that Megatron would reject, found before launch. One small function per rule; see ``registry``."""

from megawrap.megatron.rules import (
    activation,
    batch,
    changes,
    experts,
    growth,
    parallel,
    pipeline,
    precision,
    recompute,
    sequence,
    sharding,
    storage,
)
from megawrap.megatron.rules.check import check
from megawrap.megatron.rules.registry import RULES, Rule

__all__ = [
    "RULES", "Rule", "activation", "batch", "changes", "check", "experts", "growth", "parallel", "pipeline",
    "precision", "recompute", "sequence", "sharding", "storage",
]  # fmt: skip
