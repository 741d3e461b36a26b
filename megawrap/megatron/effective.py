"""What Megatron will work with: the parsed arguments after the changes that it makes to them without being asked.

Sources: ``validate_args`` of Megatron-LM core_v0.9.0 to main of 2026-08 and of ROCm/Megatron-LM 2025-08 and 2026-02.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from megawrap.hardware.table import Gpu
from megawrap.megatron.layout import Layout
from megawrap.megatron.stages import NUMBERED, virtual_size


@dataclasses.dataclass(frozen=True)
class Change:
    """``dest`` becomes ``value``, in place of ``before``, because of ``reason``."""

    dest: str
    before: Any
    value: Any
    reason: str


@dataclasses.dataclass(frozen=True)
class Effective:
    """Every argument (``dest`` → value, defaults included) as Megatron will use it, and where it runs. ``given`` holds
    what the configuration itself sets, before any change; ``defaults`` is the target's."""

    values: Mapping[str, Any]
    given: Mapping[str, Any]
    changes: tuple[Change, ...]
    layout: Layout
    fork: str
    core: tuple[int, ...]
    environment: Mapping[str, str | None]
    gpu: Gpu | None
    defaults: Mapping[str, Any]

    def __getattr__(self, dest: str) -> Any:
        return self.values.get(dest)

    def said(self, dest: str) -> bool:
        """Whether the value of ``dest`` is the configuration's or a default, and not one that follows from others."""
        return dest in self.given or all(change.dest != dest for change in self.changes)

    @classmethod
    def of(
        cls,
        defaults: Mapping[str, Any],
        given: Mapping[str, Any],
        world_size: int,
        fork: str,
        core: tuple[int, ...],
        environment: Mapping[str, str | None],
        gpu: Gpu | None = None,
    ) -> Effective:
        """From the target's ``defaults`` and what the configuration gives."""
        values = {**defaults, **given}
        changes = tuple(_settle(values, world_size, fork, core))
        return cls(values, given, changes, Layout.of(values, world_size), fork, core, environment, gpu, defaults)

    def given_instead(self, dest: str, value: Any, world_size: int) -> Effective:
        """As if the configuration gave ``value`` (``None``: nothing), or the variable ``env.NAME`` had it."""
        given, environment = dict(self.given), dict(self.environment)
        if dest.startswith("env."):
            environment[dest.removeprefix("env.")] = value
        elif value is None:
            given.pop(dest, None)
        else:
            given[dest] = value
        return Effective.of(self.defaults, given, world_size, self.fork, self.core, environment, self.gpu)


def is_emerging(optimizer: str | None) -> bool:
    """Whether it is an optimizer beside Adam and SGD, such as Muon."""
    return optimizer not in (None, "adam", "sgd")


@dataclasses.dataclass
class _Draft:
    """Values on their way to being final."""

    values: dict[str, Any]
    world_size: int
    fork: str
    core: tuple[int, ...]

    def __getattr__(self, dest: str) -> Any:
        return self.values.get(dest)

    def since(self, nvidia: tuple[int, ...], rocm: tuple[int, ...]) -> bool:
        """Whether the target is as new as the release of its fork."""
        return self.core >= (nvidia if self.fork == "nvidia" else rocm)


Proposal = Iterator[tuple[str, Any, str]]


def _settle(values: dict[str, Any], world_size: int, fork: str, core: tuple[int, ...]) -> Iterator[Change]:
    """Apply every step to ``values``, telling each change of an argument that the target has."""
    draft = _Draft(values, world_size, fork, core)
    for step in STEPS:
        for dest, value, reason in step(draft):
            if dest in values and values[dest] != value:
                yield Change(dest, values[dest], value, reason)
                values[dest] = value


def _old_names(e: _Draft) -> Proposal:
    if e.recompute_activations:
        yield "recompute_granularity", "selective", "recompute_activations is its older name"
    if e.use_rotary_position_embeddings:
        yield "position_embedding_type", "rope", "use_rotary_position_embeddings is its older name"
    if e.enable_cuda_graph and "cuda_graph_impl" in e.values:
        yield "cuda_graph_impl", "local", "enable_cuda_graph is its older name"
    if e.external_cuda_graph and "cuda_graph_impl" in e.values:
        yield "cuda_graph_impl", "transformer_engine", "external_cuda_graph is its older name"


def _layout(e: _Draft) -> Proposal:
    tensor = e.tensor_model_parallel_size
    if e.expert_tensor_parallel_size is None:
        yield "expert_tensor_parallel_size", tensor, "experts are split over TP as the rest is"
    if tensor == 1 and e.sequence_parallel:
        yield "sequence_parallel", False, "there is no tensor parallelism"
    if not _is_interleaved(e):
        yield "overlap_p2p_comm", False, "the pipeline schedule is not interleaved"
        yield "align_param_gather", False, "the pipeline schedule is not interleaved"


def _is_interleaved(e: _Draft) -> bool:
    pipeline = e.pipeline_model_parallel_size or 0
    # Before these releases the interleaved schedule ran with one virtual stage too.
    is_one_enough = not e.since((0, 14), (0, 15)) and any(e.values.get(name) for name in NUMBERED)
    return pipeline > 1 and (is_one_enough or virtual_size(e.values, pipeline) > 1)


def _batch(e: _Draft) -> Proposal:
    micro = e.micro_batch_size
    data = Layout.of(e.values, e.world_size).data
    if e.global_batch_size is None and micro and data:
        yield "global_batch_size", micro * data, "one micro-batch on each data-parallel rank"
    yield from _unset(e, "as in training", eval_global_batch_size=e.global_batch_size, eval_micro_batch_size=micro)


def _unset(e: _Draft, reason: str, **defaults: Any) -> Proposal:
    for dest, value in defaults.items():
        if e.values.get(dest) is None and value is not None:
            yield dest, value, reason


def _dimensions(e: _Draft) -> Proposal:
    hidden, heads = e.hidden_size, e.num_attention_heads
    if hidden:
        width = int(4 * hidden * 2 / 3 / 64) * 64 if e.swiglu else 4 * hidden
        reason = "4 x hidden_size x 2/3, in multiples of 64, with swiglu" if e.swiglu else "4 x hidden_size"
        yield from _unset(e, reason, ffn_hidden_size=width)
    if hidden and heads and hidden % heads == 0:
        yield from _unset(e, "hidden_size / num_attention_heads", kv_channels=hidden // heads)
    if e.num_experts == 0:
        yield "num_experts", None, "0 stands for a dense model"
    if e.num_experts or not e.since((0, 13), (0, 15)):
        yield from _unset(e, "an expert is as wide as a dense layer", moe_ffn_hidden_size=e.ffn_hidden_size)


def _experts(e: _Draft) -> Proposal:
    for dest in ("moe_router_load_balancing_type", "moe_aux_loss_coeff"):
        value = e.values.get(dest)
        if isinstance(value, list) and len(value) == 1:
            yield dest, value[0], "a list of one is that one"


def _activation(e: _Draft) -> Proposal:
    if e.position_embedding_type != "rope" and e.since((0, 10), (0, 10)):
        yield "apply_rope_fusion", False, "positions are not rotary"
    if e.add_bias_linear and e.since((0, 10), (0, 10)):
        yield "add_qkv_bias", True, "all linear layers have biases"
    if not e.add_bias_linear:
        yield "bias_gelu_fusion", False, "there are no biases to fuse"
    if e.apply_query_key_layer_scaling:
        yield "attention_softmax_in_fp32", True, "apply_query_key_layer_scaling needs it"


def _precision(e: _Draft) -> Proposal:
    if e.fp16 and not e.loss_scale:
        yield "check_for_nan_in_loss_and_grad", False, "dynamic loss scaling meets NaN on purpose"
    if e.bf16 and e.grad_reduce_in_bf16:
        yield "accumulate_allreduce_grads_in_fp32", False, "grad_reduce_in_bf16 is set"
    elif e.bf16 and e.values.get("main_grads_dtype", "fp32") == "fp32":
        yield "accumulate_allreduce_grads_in_fp32", True, "bf16 gradients are accumulated in fp32"
    if e.use_torch_fsdp2 and e.fp8_param_gather:
        yield "fp8_param_gather", False, "FSDP2 gathers bf16 parameters"
    if e.fp8 and e.fp8_recipe == "tensorwise" and e.stream_ckpt_dequant:
        yield "stream_ckpt_dequant", False, "tensorwise scales cannot be found slice by slice"


def _sharding(e: _Draft) -> Proposal:
    if e.use_megatron_fsdp and e.since((0, 18), (0, 18)):
        yield "use_distributed_optimizer", True, "Megatron-FSDP is built on it"
        yield "reuse_grad_buf_for_mxfp8_param_ag", False, "Megatron-FSDP has no such buffer"
    if is_emerging(e.optimizer) and e.since((0, 18), (0, 18)):
        yield "use_distributed_optimizer", False, f"{e.optimizer} is sharded layer by layer"


def _special(e: _Draft) -> Proposal:
    if e.fake_process_group:
        yield "check_for_nan_in_loss_and_grad", False, "a fake process group reduces nothing"
        yield "use_gloo_process_groups", False, "a fake process group has no other"
    if e.freeze_all_layers:
        yield "use_distributed_optimizer", False, "nothing is trained"
        yield "overlap_param_gather", False, "nothing is trained"


def _storage(e: _Draft) -> Proposal:
    if e.data_path and e.split is None:
        yield "split", "969, 30, 1", "it is not set"
    yield from _unset(e, "the data is read once, in order", dataloader_type="single")
    is_persistent = e.values.get("use_persistent_ckpt_worker") is not False
    if e.async_save and e.ckpt_format != "torch" and not is_persistent and e.since((0, 16), (0, 16)):
        yield "async_save", False, "use_persistent_ckpt_worker is not set"
    if e.moe_use_upcycling:
        yield "no_load_optim", True, "upcycled weights have no optimizer state"
        yield "no_load_rng", True, "upcycled weights have no random state"
    if e.skip_train and not e.perform_rl_step and e.since((0, 16), (0, 16)):
        yield "no_load_optim", True, "nothing is trained"


STEPS: tuple[Callable[[_Draft], Proposal], ...] = (
    _old_names, _layout, _batch, _dimensions, _experts, _activation, _precision, _sharding, _special, _storage,
)  # fmt: skip
"""In the order of validate_args, where a later one builds on an earlier one."""
