"""Everything that Megatron would reject, found before launch. One small function per rule; see ``registry``."""

from megawrap.megatron.rules import batch, parallel, sequence
from megawrap.megatron.rules.check import check
from megawrap.megatron.rules.registry import RULES, Effective, Rule

__all__ = ["RULES", "Effective", "Rule", "batch", "check", "parallel", "sequence"]
