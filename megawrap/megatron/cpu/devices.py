"""Which devices there are: as many as ranks on this machine, each of them the CPU."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

# Megatron's rules differ by device generation; 9 is what MI300 and Hopper report.
CAPABILITY = (9, 0)


def properties(device: Any = None) -> SimpleNamespace:
    """What ``torch.cuda.get_device_properties`` answers."""
    major, minor = CAPABILITY
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return SimpleNamespace(name="CPU stand-in", major=major, minor=minor, total_memory=total, multi_processor_count=1)


def install() -> None:
    """Replace the device functions of torch.cuda."""
    cuda: Any = torch.cuda
    cuda.is_available = lambda: True
    cuda.device_count = lambda: int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    # An int: Megatron indexes torch.cuda.default_generators with it.
    cuda.current_device = lambda: 0
    cuda.is_initialized = lambda: True
    cuda.get_device_properties = properties
    cuda.get_device_capability = lambda device=None: CAPABILITY
    cuda.get_device_name = lambda device=None: properties().name
    for name in ("set_device", "synchronize", "_lazy_init", "init", "ipc_collect"):
        setattr(cuda, name, _nothing())
    cuda.device = lambda device: contextlib.nullcontext()
    cuda._lazy_call = lambda callable, **kwargs: callable()
    # DataLoader asks torch.accelerator, and would pin memory for a device that is not there.
    accelerator: Any = torch.accelerator
    accelerator.is_available = lambda: False
    accelerator.current_accelerator = lambda check_available=False: None
    accelerator.current_device_index = lambda: 0


def _nothing() -> Callable[..., None]:
    """A function that does nothing; a new one each time, because torch._dynamo wants every name to have its own."""
    return lambda *_, **__: None
