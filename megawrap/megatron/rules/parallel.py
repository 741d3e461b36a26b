"""MW1xx: parallel sizes. Sources: Megatron-LM core_v0.19.0, and ROCm/Megatron-LM of 2025-08 and 2026-02."""

from __future__ import annotations

import math
from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.layout import smallest_world
from megawrap.megatron.rules.registry import (
    ON,
    Violation,
    choices,
    divisors,
    needs,
    nvidia,
    rocm,
    rule,
    unshared,
)

TP = "tensor_model_parallel_size"
PP = "pipeline_model_parallel_size"
CP = "context_parallel_size"
EP = "expert_model_parallel_size"
COUNTED = (TP, PP, CP, EP, "expert_tensor_parallel_size", "num_layers", "hidden_size", "ffn_hidden_size",
           "num_attention_heads", "num_query_groups", "kv_channels", "seq_length", "max_position_embeddings",
           "make_vocab_size_divisible_by", "num_distributed_optimizer_instances", "moe_ffn_hidden_size",
           "moe_latent_size", "tensor_parallel_num_weight_shards", "expert_tensor_parallel_num_weight_shards",
           "num_virtual_stages_per_pipeline_rank", "num_layers_per_virtual_pipeline_stage",
           "gdp_num_householder")  # fmt: skip
"""Of which there is at least one. Nothing can be said of a configuration without it, so this rule goes first."""
KEY_VALUE_COPIES = (0, 16)
"""From this version on TP may also be a multiple of the key/value heads, which are then copied."""


@rule(
    "MW100",
    "sizes are 1 or more",
    checked="initialize_model_parallel, TransformerConfig, the first step: division by zero",
)
def positive(e: Effective) -> Iterator[Violation]:
    for dest in COUNTED:
        size = e.values.get(dest)
        if size is not None and size < 1 and e.said(dest):
            yield Violation(f"{dest} = {size} is not a size", (dest,), choices(dest, [1]))
    if e.layout.world_size < 1:
        yield Violation(f"a world of {e.layout.world_size} ranks holds nothing", ("world_size",))


@rule("MW101", "the world size is a multiple of TP x PP x CP", checked="validate_args")
def world_size(e: Effective) -> Iterator[Violation]:
    layout = e.layout
    sizes = {TP: layout.tensor, PP: layout.pipeline, CP: layout.context}
    names = "TP x PP x CP"
    if layout.weight_shards > 1:
        sizes["tensor_parallel_num_weight_shards"], names = layout.weight_shards, f"{names} x weight shards"
    size, model = layout.world_size, math.prod(sizes.values())
    if size % model:
        product = " x ".join(map(str, sizes.values()))
        yield Violation(
            f"a world of {size} ranks cannot hold {names} = {product} = {model}: {size} % {model} = {size % model}",
            ("world_size", *(dest for dest, size in sizes.items() if size > 1)),
            choices(TP, [one for one in divisors(size, layout.tensor) if size % (model // layout.tensor * one) == 0]),
        )


@rule("MW102", "the world size is a multiple of ETP x EP x PP", checked="initialize_model_parallel")
def expert_world_size(e: Effective) -> Iterator[Violation]:
    layout = e.layout
    experts = layout.expert_tensor * layout.expert * layout.pipeline
    is_own = layout.expert > 1 or layout.expert_tensor != layout.tensor
    if is_own and layout.world_size % experts and layout.data is not None:
        sizes = f"{layout.expert_tensor} x {layout.expert} x {layout.pipeline}"
        legal = divisors(layout.world_size // (layout.pipeline * layout.expert_tensor), layout.expert)
        yield Violation(
            f"a world of {layout.world_size} ranks is not a multiple of ETP x EP x PP = {sizes} = {experts}; "
            f"the smallest world of this layout is {smallest_world(e.values)}",
            ("world_size", "expert_model_parallel_size"),
            choices("expert_model_parallel_size", legal),
        )


@rule("MW103", "the number of attention heads is a multiple of TP", checked="TransformerConfig")
def heads(e: Effective) -> Iterator[Violation]:
    count, tensor = e.num_attention_heads, e.layout.tensor
    if count and count % tensor:
        yield Violation(
            unshared(f"{count} attention heads", count, "TP", tensor),
            (TP, "num_attention_heads"),
            choices(TP, divisors(count, tensor)),
        )


@rule("MW104", "the number of key/value heads fits TP", checked="TransformerConfig")
def query_groups(e: Effective) -> Iterator[Violation]:
    groups, tensor = e.num_query_groups, e.layout.tensor
    if not e.group_query_attention or not groups or groups % tensor == 0:
        return
    if e.core >= KEY_VALUE_COPIES and tensor % groups == 0:
        return
    also = " or a divisor" if e.core >= KEY_VALUE_COPIES else ""
    yield Violation(
        f"{groups} key/value heads with TP = {tensor}: they must be a multiple{also} of TP",
        (TP, "num_query_groups"),
        choices(TP, divisors(groups, tensor)),
    )


@rule("MW106", "the feed-forward width is a multiple of TP", checked="nowhere: dies when the layers are built")
def feed_forward(e: Effective) -> Iterator[Violation]:
    width, tensor = e.ffn_hidden_size, e.layout.tensor
    if width and width % tensor and (not e.num_experts or e.moe_layer_freq not in (None, 1)):
        yield Violation(
            unshared(f"a feed-forward width of {width}", width, "TP", tensor),
            (TP, "ffn_hidden_size"),
            choices(TP, divisors(width, tensor)),
        )


@rule("MW107", "the number of experts is a multiple of EP", checked="validate_args")
def experts(e: Effective) -> Iterator[Violation]:
    expert = e.layout.expert
    if expert > 1 and not e.num_experts:
        message = f"EP = {expert}, but the model has no experts"
        yield Violation(message, ("expert_model_parallel_size",), choices("expert_model_parallel_size", [1]))
    elif e.num_experts and e.num_experts % expert:
        yield Violation(
            f"{e.num_experts} experts cannot be shared by EP = {expert} ranks",
            ("expert_model_parallel_size", "num_experts"),
            choices("expert_model_parallel_size", divisors(e.num_experts, expert)),
        )


@rule("MW115", "hierarchical context-parallel sizes multiply to CP", checked="validate_args")
def hierarchical_sizes(e: Effective) -> Iterator[Violation]:
    sizes, context = e.hierarchical_context_parallel_sizes, e.layout.context
    if sizes and math.prod(sizes) != context:
        message = f"hierarchical_context_parallel_sizes {sizes} multiply to {math.prod(sizes)}, and CP = {context}"
        yield Violation(message, ("hierarchical_context_parallel_sizes", CP), choices(CP, [math.prod(sizes)]))
    if "a2a+p2p" in (e.cp_comm_type or ()) and not sizes:
        message = "cp_comm_type a2a+p2p needs hierarchical_context_parallel_sizes"
        yield Violation(message, ("cp_comm_type", "hierarchical_context_parallel_sizes"))


@rule("MW116", "one way of context-parallel communication, or one for each layer", checked="TransformerConfig")
def context_communication(e: Effective) -> Iterator[Violation]:
    kinds = e.cp_comm_type or ()
    is_always_asked = e.core < ((0, 12) if e.fork == "nvidia" else (0, 15))
    if (e.layout.context > 1 or is_always_asked) and len(kinds) > 1 and len(kinds) != e.num_layers:
        message = f"cp_comm_type has {len(kinds)} entries for {e.num_layers} layers"
        yield Violation(message, ("cp_comm_type", "num_layers"))


@rule("MW117", "weights are split into a multiple of TP", checked="validate_args")
def weight_shards(e: Effective) -> Iterator[Violation]:
    pairs = (("tensor_parallel_num_weight_shards", e.layout.tensor),
             ("expert_tensor_parallel_num_weight_shards", e.layout.expert_tensor))  # fmt: skip
    for dest, size in pairs:
        shards = e.values.get(dest)
        if shards and shards % size:
            yield Violation(f"{dest} = {shards} is not a multiple of {size}", (dest, TP), choices(dest, [size]))


@rule("MW118", "the width of an expert is a multiple of ETP", checked="nowhere: dies when the layers are built")
def expert_width(e: Effective) -> Iterator[Violation]:
    width, size = e.moe_ffn_hidden_size, e.layout.expert_tensor
    if e.num_experts and width and width % size:
        yield Violation(
            unshared(f"experts of width {width}", width, "ETP", size),
            ("expert_tensor_parallel_size", "moe_ffn_hidden_size"),
            choices("expert_tensor_parallel_size", divisors(width, size)),
        )


@rule("MW119", "a number of distributed optimizer instances divides DP", checked="initialize_model_parallel")
def optimizer_instances(e: Effective) -> Iterator[Violation]:
    instances, data = e.num_distributed_optimizer_instances or 1, e.layout.data or 0
    with_context, with_experts = ((0, 11), (0, 13)) if e.fork == "nvidia" else ((0, 15), (0, 15))
    sizes = {"DP x CP": data * e.layout.context} if e.core >= with_context else {"DP": data}
    if e.core >= with_experts:
        sizes["expert DP"] = e.layout.expert_data or 0
    for name, size in sizes.items():
        if size % instances:
            message = f"{instances} instances of the distributed optimizer do not divide {name} = {size}"
            yield Violation(message, ("num_distributed_optimizer_instances",),
                            choices("num_distributed_optimizer_instances", divisors(size, instances)))  # fmt: skip


ENCODER = ("encoder_tensor_model_parallel_size", "encoder_pipeline_model_parallel_size",
           "pipeline_model_parallel_split_rank")  # fmt: skip


@rule("MW122", "a model without an encoder gives it no ranks", checked="validate_args",
      spans=(nvidia(until="0.14"), rocm(until="0.15")))  # fmt: skip
def encoder(e: Effective) -> Iterator[Violation]:
    for dest in ENCODER:
        if e.given.get(dest):
            message = f"{dest} = {e.given[dest]} is for models with an encoder and a decoder"
            yield Violation(message, (dest,), choices(dest, [None]))


@rule("MW124", "EP divided DP", checked="initialize_model_parallel",
      spans=(nvidia(until="0.10"), rocm(until="0.10")))  # fmt: skip
def experts_in_data(e: Effective) -> Iterator[Violation]:
    data, expert = e.layout.data, e.layout.expert
    if data is not None and expert > 1 and data % expert:
        message = f"EP = {expert} does not divide DP = {data}, and this release splits experts over DP only"
        yield Violation(message, (EP, "world_size"), choices(EP, divisors(data, expert)))


needs("MW123", "ranks are counted TP first, then PP, without experts and context parallelism",
      when={"use_tp_pp_dp_mapping": ON}, need={CP: (1,), EP: (1,)},
      spans=(nvidia(until="0.11"), rocm(until="0.15")))  # fmt: skip
