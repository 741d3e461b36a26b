"""Tensors: whatever is asked to be on a GPU is on the CPU, and says that it is on a GPU where Megatron asks by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_CPU = torch.device("cpu")
_TYPES = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")


class OnCpu(TorchFunctionMode):
    """Turns every device argument that means a GPU into the CPU. Entered once for the life of the process."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if "device" in kwargs and _is_gpu(kwargs["device"]):
            kwargs["device"] = _CPU
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        if func is torch.Tensor.to and len(args) > 1 and _is_gpu(args[1]):
            args = (args[0], _CPU, *args[2:])
        elif func is torch.Tensor.type and len(args) == 1 and not kwargs:
            return func(*args).replace("torch.", "torch.cuda.", 1)  # Megatron compares these names
        return func(*args, **kwargs)


def _is_gpu(device: Any) -> bool:
    """A bare int is a GPU's index; a bool or a dtype in the same place is not a device."""
    if isinstance(device, bool) or device is None:
        return False
    if isinstance(device, int):
        return True
    return isinstance(device, str | torch.device) and str(device).startswith("cuda")


def install() -> None:
    """Enter the mode, and replace the methods that it does not see."""
    tensor: Any = torch.Tensor
    tensor.cuda = lambda self, *args, **kwargs: self
    tensor.pin_memory = lambda self, *args, **kwargs: self
    module: Any = torch.nn.Module
    module.cuda = lambda self, device=None: self
    for name in _TYPES:
        setattr(torch.cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))
    autograd: Any = torch.autograd
    autograd._engine_run_backward = _in_mode(autograd._engine_run_backward)
    OnCpu().__enter__()


def _in_mode(run: Callable[..., Any]) -> Callable[..., Any]:
    """torch leaves the mode while it handles ``Tensor.backward``, but the hooks of gradients ask for GPUs as well."""

    def run_in_mode(*args: Any, **kwargs: Any) -> Any:
        with OnCpu():
            return run(*args, **kwargs)

    return run_in_mode
