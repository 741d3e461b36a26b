"""MW45x, MW46x: what Megatron starts with and dies of later: when the model or the optimizer is built, in the first
step, at the first checkpoint. Sources: Megatron-LM core_v0.19.0 and ROCm/Megatron-LM 2026-02, as each rule says."""

from __future__ import annotations

import math
from collections.abc import Iterator

from megawrap.megatron.effective import Effective, is_emerging
from megawrap.megatron.rules.experts import balancing
from megawrap.megatron.rules.parallel import EP, PP, TP
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, divisors, needs, nvidia, rocm, rule, unshared
from megawrap.megatron.rules.sharding import EMERGING
from megawrap.megatron.rules.storage import PER_SPLIT

SINCE_0_12 = (nvidia("0.12"), rocm("0.15"))

needs("MW450", "the distributed optimizer works with Adam", when={"optimizer": ("sgd",)},
      need={"use_distributed_optimizer": OFF}, checked="nowhere: dies when the optimizer is built")  # fmt: skip
needs("MW451", "experts in a grouped product have no fused bias and dropout",
      when={"num_experts": ON, "moe_grouped_gemm": ON, "add_bias_linear": ON}, need={"bias_dropout_fusion": OFF},
      checked="nowhere: dies when the layers are built", spans=(nvidia("0.15"), rocm("0.15")))  # fmt: skip
needs("MW452", "shared experts have no biases",
      when={"num_experts": ON, "moe_shared_expert_intermediate_size": ON}, need={"add_bias_linear": OFF},
      checked="nowhere: dies when the layers are built", spans=(nvidia("0.10"), rocm()))  # fmt: skip


@rule("MW453", "the width of shared experts is a multiple of TP", checked="nowhere: dies when the layers are built")
def shared_width(e: Effective) -> Iterator[Violation]:
    width, tensor, key = e.moe_shared_expert_intermediate_size, e.layout.tensor, "moe_shared_expert_intermediate_size"
    if e.num_experts and width and width % tensor:
        message = unshared(f"shared experts of width {width}", width, "TP", tensor)
        yield Violation(message, (TP, key), choices(TP, divisors(width, tensor)))


needs("MW454", "a loss for each token is summed, not averaged in the collective",
      when={"calculate_per_token_loss": ON}, need={"ddp_average_in_collective": OFF},
      checked="nowhere: dies when data parallelism is built", spans=SINCE_0_12)  # fmt: skip


@rule("MW455", "several instances of the optimizer are of the distributed one",
      checked="nowhere: dies when data parallelism is built", spans=(nvidia("0.10"), rocm("0.10")))  # fmt: skip
def instances(e: Effective) -> Iterator[Violation]:
    count, key = e.num_distributed_optimizer_instances or 1, "num_distributed_optimizer_instances"
    if count < 2:
        return
    if not (e.use_distributed_optimizer or e.use_megatron_fsdp or e.use_torch_fsdp2):
        message = f"{key} = {count} without use_distributed_optimizer"
        yield Violation(message, (key, "use_distributed_optimizer"), choices(key, [1]))
    if e.ddp_reduce_scatter_with_fp32_accumulation:
        message = f"{key} = {count} does not work with ddp_reduce_scatter_with_fp32_accumulation"
        yield Violation(message, (key, "ddp_reduce_scatter_with_fp32_accumulation"), choices(key, [1]))


needs("MW456", "checkpoints are written in the background in a distributed format",
      when={"async_save": ON, "save": ON}, need={"ckpt_format": ("torch_dist", "torch_dcp", "fsdp_dtensor")},
      checked="nowhere: dies at the first checkpoint")  # fmt: skip
needs("MW457", "latent attention had no key/value groups",
      when={"multi_latent_attention": ON}, need={"group_query_attention": OFF},
      checked="nowhere: dies when the FLOPs of the first step are counted",
      spans=(nvidia("0.12", "0.16"), rocm("0.15", "0.16")))  # fmt: skip
needs("MW458", "yarn is a kind of rope of latent attention",
      when={"multi_latent_attention": ON, "position_embedding_type": ("yarn",)},
      need={"position_embedding_type": ("rope",)}, checked="nowhere: dies when the model is built",
      spans=(nvidia("0.19"),))  # fmt: skip


@rule("MW459", "data is split, or given for each split", checked="nowhere: dies when the data is built")
def split_twice(e: Effective) -> Iterator[Violation]:
    paths = [dest for dest in PER_SPLIT if e.values.get(dest)]
    if paths and e.given.get("split"):
        message = f"split says how data_path is shared out, and {' and '.join(paths)} say it too"
        yield Violation(message, ("split", *paths), choices("split", [None]))


@rule("MW460", "probabilities on the input are for one visit", checked="nowhere: dies in the first step",
      spans=SINCE_0_12)  # fmt: skip
def probabilities(e: Effective) -> Iterator[Violation]:
    if e.num_experts and e.moe_apply_probs_on_input and e.moe_router_topk != 1:
        message = f"moe_apply_probs_on_input works with moe_router_topk = 1, and it is {e.moe_router_topk}"
        yield Violation(message, ("moe_apply_probs_on_input", "moe_router_topk"),
                        choices("moe_apply_probs_on_input", [False]))  # fmt: skip


needs("MW461", "checkpoints between checkpoints have a kind",
      when={"non_persistent_save_interval": ON, "save": ON}, need={"non_persistent_ckpt_type": ("global", "local")},
      checked="nowhere: dies at the first checkpoint")  # fmt: skip
needs("MW462", "several validation sets are read whole",
      when={"multiple_validation_sets": ON}, need={"full_validation": ON},
      checked="nowhere: dies when the data is built", spans=(nvidia("0.14"), rocm("0.15")))  # fmt: skip


@rule("MW463", "with PP before DP, experts have the DP of the rest", checked="initialize_model_parallel",
      spans=(nvidia("0.11"), rocm("0.15")))  # fmt: skip
def order(e: Effective) -> Iterator[Violation]:
    key = "use_tp_pp_dp_mapping"
    # The data-parallel size that counts context parallelism in, as the groups are made.
    if e.values.get(key) and e.layout.pipeline > 1 and e.layout.expert_data != e.layout.data:
        message = f"{key}: expert DP = {e.layout.expert_data}, and DP = {e.layout.data}"
        yield Violation(message, (key, EP, "expert_tensor_parallel_size"), choices(key, [False]))


@rule("MW464", "the padded vocabulary is a multiple of TP", checked="nowhere: dies when the embedding is built")
def vocabulary(e: Effective) -> Iterator[Violation]:
    tensor = e.layout.tensor
    sizes = {"padded_vocab_size": e.padded_vocab_size}
    if e.values.get("pad_vocab_size") is False and not e.padded_vocab_size:
        sizes["vocab_size"] = e.vocab_size
    for dest, size in sizes.items():
        if size and size > 0 and size % tensor:
            message = unshared(f"{dest} = {size}", size, "TP", tensor)
            yield Violation(message, (dest, TP), choices(TP, divisors(size, tensor)))


@rule("MW465", "SHARP is for groups that there are", checked="nowhere: dies when the groups are made",
      spans=(nvidia("0.14"), rocm("0.15")))  # fmt: skip
def sharp(e: Effective) -> Iterator[Violation]:
    group, key = e.sharp_enabled_group, "sharp_enabled_group"
    if group and not e.use_sharp:
        yield Violation(f"{key} = {group} without use_sharp", (key, "use_sharp"), choices("use_sharp", [True]))
    elif group == "dp_replica" and (e.num_distributed_optimizer_instances or 1) < 2:
        message = f"{key} = dp_replica with one instance of the distributed optimizer"
        yield Violation(message, (key, "num_distributed_optimizer_instances"), choices(key, ["dp"]))


@rule("MW466", "UCC between stages wants several queues", checked="nowhere: dies when the groups are made",
      spans=SINCE_0_12)  # fmt: skip
def ucc(e: Effective) -> Iterator[Violation]:
    key = "pipeline_model_parallel_comm_backend"
    if e.values.get(key) == "ucc" and e.layout.pipeline > 1 and e.environment.get("CUDA_DEVICE_MAX_CONNECTIONS") == "1":
        yield Violation(f"{key} = ucc with CUDA_DEVICE_MAX_CONNECTIONS = 1", (key, PP), choices(key, ["nccl"]))


needs("MW467", "integrity is verified of distributed checkpoints",
      when={"verify_integrity": ON}, need={"ckpt_format": ("torch_dist",)},
      checked="nowhere: dies when checkpoints are configured", spans=(nvidia("0.19"),))  # fmt: skip


@rule("MW468", "optimizers beside Adam and SGD are of bf16", checked="nowhere: dies when the optimizer is built",
      spans=EMERGING)  # fmt: skip
def emerging(e: Effective) -> Iterator[Violation]:
    if not is_emerging(e.optimizer):
        return
    for dest in ("fp16", "overlap_param_gather_with_optimizer_step"):
        if e.values.get(dest):
            yield Violation(f"optimizer = {e.optimizer} does not work with {dest}", (dest, "optimizer"),
                            choices(dest, [False]))  # fmt: skip


@rule("MW469", "quantile balancing needs no loss", checked="nowhere: dies in the first step", spans=(nvidia("0.19"),))
def quantile(e: Effective) -> Iterator[Violation]:
    if "quantile_balancing" not in balancing(e) or not e.num_experts:
        return
    weights = e.moe_aux_loss_coeff
    wrong = {
        "moe_aux_loss_coeff": any(weights if isinstance(weights, list | tuple) else [weights]),
        "moe_router_fusion": bool(e.moe_router_fusion),
        "moe_router_num_groups": bool(e.moe_router_num_groups),
    }
    for dest in (name for name, is_wrong in wrong.items() if is_wrong):
        message = f"quantile balancing does not work with {dest} = {e.values[dest]}"
        yield Violation(message, (dest, "moe_router_load_balancing_type"))


@rule("MW470", "numbers that count are not negative", checked="nowhere: dies in the first step")
def counts(e: Effective) -> Iterator[Violation]:
    if e.manual_gc and e.manual_gc_interval is not None and e.manual_gc_interval < 0:
        message = f"manual_gc_interval = {e.manual_gc_interval} is negative"
        yield Violation(message, ("manual_gc_interval",), choices("manual_gc_interval", [0]))


needs("MW471", "progress is logged beside checkpoints", when={"log_progress": ON}, need={"save": ON},
      checked="nowhere: dies at the start of training")  # fmt: skip


@rule("MW472", "the heads are a multiple of the key/value heads", checked="nowhere: dies in the first forward pass")
def groups(e: Effective) -> Iterator[Violation]:
    heads, groups = e.num_attention_heads, e.num_query_groups
    if e.group_query_attention and heads and groups and heads % groups:
        message = f"{heads} heads cannot share {groups} key/value heads: {heads} % {groups} = {heads % groups}"
        yield Violation(message, ("num_query_groups", "num_attention_heads"),
                        choices("num_query_groups", divisors(heads, groups)))  # fmt: skip


@rule("MW473", "rotary positions turn pairs", checked="nowhere: dies in the first forward pass")
def pairs(e: Effective) -> Iterator[Violation]:
    size = e.kv_channels
    is_rotary = e.position_embedding_type == "rope" and not e.multi_latent_attention
    if size and size % 2 and is_rotary:
        message = f"kv_channels = {size} is odd, and rotary positions turn pairs"
        yield Violation(message, ("kv_channels",), choices("kv_channels", [size + 1]))


_SHARE, _POSITIVE = (0, 1), (0, math.inf)
_BELOW_1 = (0, 1 - 1e-12)
RANGES = {
    "log_interval": (1, math.inf), "attention_dropout": _SHARE, "hidden_dropout": _SHARE, "rotary_percent": _SHARE,
    "adam_beta1": _BELOW_1, "adam_beta2": _BELOW_1, "adam_eps": _POSITIVE, "sgd_momentum": _POSITIVE, "lr": _POSITIVE,
    "min_lr": _POSITIVE, "init_method_std": _POSITIVE, "rotary_base": (1, math.inf), "norm_epsilon": _POSITIVE,
    "layernorm_epsilon": _POSITIVE, "clip_grad": _POSITIVE,
}  # fmt: skip
"""Least and greatest value of what PyTorch's layers and optimizers refuse, or cannot compute with."""


@rule("MW474", "numbers are such that something can be computed with them",
      checked="nowhere: dies in the first step, or trains on NaN")  # fmt: skip
def ranges(e: Effective) -> Iterator[Violation]:
    for dest, (least, most) in RANGES.items():
        value = e.values.get(dest)
        if not isinstance(value, int | float) or isinstance(value, bool) or not e.said(dest):
            continue
        if not (least <= value <= most and math.isfinite(value)):
            until = "" if most == math.inf else f" and {'less than' if most < 1 else 'at most'} 1"
            message = f"{dest} = {value} is not a number of at least {least}{until}"
            yield Violation(message, (dest,), choices(dest, [least] if dest == "log_interval" else []))
