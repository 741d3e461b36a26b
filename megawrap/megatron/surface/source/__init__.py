"""The arguments of a Megatron-LM read from its source: nothing of it is imported or executed."""

from megawrap.megatron.surface.source.reader import Source, read
from megawrap.megatron.surface.source.tree import Tree, Unreadable

__all__ = ["Source", "Tree", "Unreadable", "read"]
