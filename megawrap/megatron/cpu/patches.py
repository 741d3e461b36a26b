"""What has to change inside Megatron itself, each thing when its module has been imported."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch

from megawrap.megatron.helpers import build_for_this_python


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


def _experts_without_a_gpu(module: Any) -> None:
    """Counts of tokens per expert leave a GPU as numpy arrays, which all_to_all takes; Megatron lets tensors that are
    on the CPU already pass as they are, and those all_to_all does not take. And the router of core_v0.16.1 reads
    ``te_general_gemm``, which is defined only with Transformer Engine."""

    def maybe_move_tensor_to_cpu(tensor: Any, as_numpy: bool = False, record_stream: bool = False) -> Any:
        return tensor.numpy() if as_numpy and torch.is_tensor(tensor) else tensor

    assert callable(module.maybe_move_tensor_to_cpu)
    module.maybe_move_tensor_to_cpu = maybe_move_tensor_to_cpu
    module.te_general_gemm = getattr(module, "te_general_gemm", None)


def _resume_with_torch_adam(module: Any) -> None:
    """Without Transformer Engine and Apex, Megatron reads Adam's step from its state before it loads a checkpoint with
    a distributed optimizer, and torch's Adam has no state before its first step: it stops with an AssertionError. Past
    that, it leaves the step of the parameters at what it was before loading; the true one is in the groups."""
    read, load = module.DistributedOptimizer.state_dict, module.DistributedOptimizer.load_state_dict

    def load_state_dict(self: Any, state_dict: Any) -> None:
        load(self, state_dict)
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                self.optimizer.state[parameter]["step"] = torch.tensor(float(group["step"]))

    def state_dict(self: Any) -> Any:
        adam = self.optimizer
        if adam is None or adam.state:
            return read(self)
        for group in adam.param_groups:
            for parameter in group["params"]:
                adam.state[parameter]["step"] = torch.tensor(0.0)
        try:
            return read(self)
        finally:
            # Loading allocates the state of an optimizer that has none.
            adam.state.clear()

    module.DistributedOptimizer.state_dict, module.DistributedOptimizer.load_state_dict = state_dict, load_state_dict


def _no_warm_up(module: Any) -> None:
    """The warm-up of compiled functions draws random numbers on the GPU, as many as TP and sequence parallel say. Here
    they would come from the generator of the initial weights, and every layout would start from other weights."""
    assert callable(module._warmup_jit_function)
    module._warmup_jit_function = lambda *_, **__: None


PATCHES: dict[str, Callable[[Any], None]] = {
    "megatron.core.transformer.torch_norm": _norm_with_sequence_parallel,
    "megatron.core.optimizer.distrib_optimizer": _resume_with_torch_adam,
    "megatron.core.transformer.moe.moe_utils": _experts_without_a_gpu,
    "megatron.core.datasets.utils": build_for_this_python,
    "megatron.training.initialize": _no_warm_up,
}


class _AfterImport(importlib.abc.MetaPathFinder):
    """Applies the patch of a module right after it has been executed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec that the other finders give, its loader made to patch."""
        if name not in PATCHES:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_and_patch(module: ModuleType) -> None:
            execute(module)
            PATCHES[name](module)

        spec.loader.exec_module = exec_and_patch  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Watch for the imports."""
    early = sorted(name for name in PATCHES if name in sys.modules)
    assert not early, f"imported before the stand-in: {early}"
    sys.meta_path.insert(0, _AfterImport())
