"""Everything that Megatron would reject, found before launch. One small function per rule; see ``registry``."""

from megawrap.megatron.rules import (
    activation,
    batch,
    captures,
    changes,
    dispatch,
    experts,
    graphs,
    growth,
    late,
    parallel,
    pipeline,
    precision,
    recompute,
    sequence,
    sharding,
    storage,
    tensor,
    variants,
)
from megawrap.megatron.rules.check import check
from megawrap.megatron.rules.registry import RULES, Rule

__all__ = [
    "RULES", "Rule", "activation", "batch", "captures", "changes", "check", "dispatch", "experts", "graphs", "growth",
    "late", "parallel", "pipeline", "precision", "recompute", "sequence", "sharding", "storage", "tensor", "variants",
]  # fmt: skip
