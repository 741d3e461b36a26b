"""MW1xx: parallel sizes. Sources: Megatron-LM core_v0.19.0, and ROCm/Megatron-LM of 2025-08 and 2026-02."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.estimate.parameters import feed_forward_size
from megawrap.megatron.layout import smallest_world
from megawrap.megatron.rules.registry import Effective, Violation, choices, divisors, multiples, rule

TP = "tensor_model_parallel_size"
PP = "pipeline_model_parallel_size"


@rule("MW101", "the world size is a multiple of TP x PP x CP", checked="validate_args")
def world_size(e: Effective) -> Iterator[Violation]:
    size, model = e.layout.world_size, e.layout.tensor * e.layout.pipeline * e.layout.context
    if size % model:
        sizes = {TP: e.layout.tensor, PP: e.layout.pipeline, "context_parallel_size": e.layout.context}
        product = " x ".join(map(str, sizes.values()))
        yield Violation(
            f"a world of {size} ranks cannot hold TP x PP x CP = {product} = {model}: "
            f"{size} % {model} = {size % model}",
            ("world_size", *(dest for dest, size in sizes.items() if size > 1)),
            choices(
                TP, [one for one in divisors(size, e.layout.tensor) if size % (model // e.layout.tensor * one) == 0]
            ),
        )


@rule("MW102", "the world size is a multiple of ETP x EP x PP", checked="initialize_model_parallel")
def expert_world_size(e: Effective) -> Iterator[Violation]:
    layout = e.layout
    experts = layout.expert_tensor * layout.expert * layout.pipeline
    if layout.expert > 1 and layout.world_size % experts and layout.data is not None:
        sizes = f"{layout.expert_tensor} x {layout.expert} x {layout.pipeline}"
        legal = divisors(layout.world_size // (layout.pipeline * layout.expert_tensor), layout.expert)
        yield Violation(
            f"a world of {layout.world_size} ranks cannot hold ETP x EP x PP = {sizes} = {experts}; "
            f"the smallest that can is {smallest_world(e.values)}",
            ("world_size", "expert_model_parallel_size"),
            choices("expert_model_parallel_size", legal),
        )


@rule("MW103", "the number of attention heads is a multiple of TP", checked="TransformerConfig")
def heads(e: Effective) -> Iterator[Violation]:
    count, tensor = e.num_attention_heads, e.layout.tensor
    if count and count % tensor:
        yield Violation(
            f"{count} attention heads cannot be shared by TP = {tensor} ranks: {count} % {tensor} = {count % tensor}",
            (TP, "num_attention_heads"),
            choices(TP, divisors(count, tensor)),
        )


@rule("MW104", "the number of key/value heads fits TP", checked="TransformerConfig")
def query_groups(e: Effective) -> Iterator[Violation]:
    groups, tensor = e.num_query_groups, e.layout.tensor
    if not e.group_query_attention or not groups or groups % tensor == 0:
        return
    # From 0.16 on TP may also be a multiple of the key/value heads, which are then copied.
    if e.core >= (0, 16) and tensor % groups == 0:
        return
    also = " or a divisor" if e.core >= (0, 16) else ""
    yield Violation(
        f"{groups} key/value heads with TP = {tensor}: they must be a multiple{also} of TP",
        (TP, "num_query_groups"),
        choices(TP, divisors(groups, tensor)),
    )


@rule("MW105", "the number of layers is a multiple of PP", checked="validate_args")
def layers(e: Effective) -> Iterator[Violation]:
    uneven = ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers", "pipeline_model_parallel_layout")
    shifted = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")
    count = (e.num_layers or 0) + sum(bool(e.values.get(name)) for name in shifted)
    if any(e.values.get(name) for name in uneven) or count % e.layout.pipeline == 0:
        return
    yield Violation(
        f"{count} layers cannot be divided into PP = {e.layout.pipeline} stages: "
        f"{count} % {e.layout.pipeline} = {count % e.layout.pipeline}",
        (PP, "num_layers"),
        choices(PP, divisors(count, e.layout.pipeline)),
    )


@rule("MW106", "the feed-forward width is a multiple of TP", checked="nowhere: dies when the layers are built")
def feed_forward(e: Effective) -> Iterator[Violation]:
    if not e.hidden_size or e.num_experts:
        return
    width, tensor = feed_forward_size(e.values), e.layout.tensor
    if width % tensor:
        yield Violation(
            f"a feed-forward width of {width} cannot be shared by TP = {tensor} ranks: "
            f"{width} % {tensor} = {width % tensor}",
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


@rule("MW108", "ROCm's fork wants sequence parallelism with TP > 1", checked="validate_args")
def rocm_sequence_parallel(e: Effective) -> Iterator[Violation]:
    is_between = (0, 10) <= e.core < (0, 16)
    if e.fork == "rocm" and is_between and e.layout.tensor > 1 and not e.sequence_parallel:
        yield Violation(
            f"TP = {e.layout.tensor} without sequence parallelism: this ROCm release refuses it for every model, "
            "though its message speaks of experts only",
            ("sequence_parallel", TP),
            choices("sequence_parallel", [True]),
        )


@rule("MW109", "with sequence parallelism the sequence is a multiple of TP", checked="nowhere: dies in the first step")
def sequence_split(e: Effective) -> Iterator[Violation]:
    length, tensor, context = e.seq_length, e.layout.tensor, e.layout.context
    if e.sequence_parallel and length and length % context == 0 and length // context % tensor:
        yield Violation(
            f"{length // context} tokens on each rank cannot be shared by TP = {tensor} ranks",
            ("seq_length", TP),
            choices("seq_length", multiples(tensor * context, length)),
        )


@rule("MW110", "sequence parallelism needs TP > 1", checked="validate_args turns it off", severity="warning")
def sequence_parallel_alone(e: Effective) -> Iterator[Violation]:
    if e.sequence_parallel and e.layout.tensor == 1:
        message = "sequence parallelism without tensor parallelism: Megatron turns it off silently"
        yield Violation(message, ("sequence_parallel",), choices("sequence_parallel", [False]))


@rule("MW111", "EP > 1 with TP > 1 needs sequence parallelism", checked="the first forward pass")
def expert_sequence_parallel(e: Effective) -> Iterator[Violation]:
    if e.layout.expert > 1 and e.layout.tensor > 1 and not e.sequence_parallel:
        message = f"EP = {e.layout.expert} and TP = {e.layout.tensor} without sequence parallelism"
        yield Violation(message, ("sequence_parallel",), choices("sequence_parallel", [True]))


@rule("MW112", "CUDA_DEVICE_MAX_CONNECTIONS fits the layout", checked="validate_args")
def device_connections(e: Effective) -> Iterator[Violation]:
    value = e.environment.get("CUDA_DEVICE_MAX_CONNECTIONS")
    sharded = e.use_torch_fsdp2 or e.use_megatron_fsdp
    if sharded and value == "1":
        yield Violation(
            "CUDA_DEVICE_MAX_CONNECTIONS = 1 with fully sharded data parallel: Megatron refuses it",
            ("use_torch_fsdp2" if e.use_torch_fsdp2 else "use_megatron_fsdp",),
        )
    elif not sharded and e.layout.tensor * e.layout.context > 1 and value != "1":
        yield Violation(f"CUDA_DEVICE_MAX_CONNECTIONS = {value or 'unset'} with TP x CP > 1: Megatron wants 1", (TP,))
