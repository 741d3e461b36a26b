"""What has to change inside Megatron itself, each thing when its module has been imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch


def _norm_with_sequence_parallel(module: Any) -> None:
    """Megatron's plain torch norm refuses sequence parallelism. It computes the same; only the gradients of its
    parameters have to be summed over the tensor-parallel ranks, as Megatron does for those marked so."""
    build = module.WrappedTorchNorm.__new__

    def new(cls: type, config: Any, *args: Any, **kwargs: Any) -> torch.nn.Module:
        is_parallel, config.sequence_parallel = config.sequence_parallel, False
        try:
            norm: torch.nn.Module = build(cls, config, *args, **kwargs)
        finally:
            config.sequence_parallel = is_parallel
        for parameter in norm.parameters():
            parameter.sequence_parallel = is_parallel
        return norm

    module.WrappedTorchNorm.__new__ = new


PATCHES: dict[str, Callable[[Any], None]] = {"megatron.core.transformer.torch_norm": _norm_with_sequence_parallel}


class _AfterImport(importlib.abc.MetaPathFinder):
    """Applies the patch of a module right after it has been executed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if name not in PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_and_patch(module: ModuleType) -> None:
            execute(module)
            PATCHES[name](module)

        spec.loader.exec_module = exec_and_patch  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Watch for the imports."""
    sys.meta_path.insert(0, _AfterImport())
