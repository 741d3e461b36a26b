"""Memory statistics of a device that has none of its own: zeros."""

from __future__ import annotations

import collections
from typing import Any

import torch

from megawrap.megatron.cpu.devices import properties


def install() -> None:
    """Replace the memory functions of torch.cuda."""
    cuda: Any = torch.cuda
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        setattr(cuda, name, lambda device=None: 0)
    for name in ("empty_cache", "reset_peak_memory_stats", "reset_max_memory_allocated"):
        setattr(cuda, name, lambda device=None: None)
    cuda.memory_stats = lambda device=None: collections.defaultdict(int)
    # ROCm's fork logs the share of used memory: 1 - free / total.
    cuda.mem_get_info = lambda device=None: (properties().total_memory, properties().total_memory)
