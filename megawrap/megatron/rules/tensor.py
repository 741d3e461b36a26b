"""MW108–MW114, MW120, MW121: sequence parallelism, and the hardware queues that overlap needs. Sources: validate_args
of Megatron-LM core_v0.9.0 to core_v0.19.0, and of ROCm/Megatron-LM of 2025-08 and 2026-02."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.parallel import CP, TP
from megawrap.megatron.rules.registry import ON, Violation, choices, multiples, needs, nvidia, rocm, rule


@rule("MW108", "ROCm's fork wants sequence parallelism with TP > 1", checked="validate_args",
      spans=(rocm("0.10", "0.16"),))  # fmt: skip
def rocm_sequence_parallel(e: Effective) -> Iterator[Violation]:
    if e.layout.tensor > 1 and not e.sequence_parallel:
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
    if e.given.get("sequence_parallel") and e.layout.tensor == 1:
        message = "sequence parallelism without tensor parallelism: Megatron turns it off silently"
        yield Violation(message, ("sequence_parallel",), choices("sequence_parallel", [False]))


@rule("MW111", "EP > 1 with TP > 1 needs sequence parallelism", checked="nowhere: dies in the first forward pass")
def expert_sequence_parallel(e: Effective) -> Iterator[Violation]:
    if e.layout.expert > 1 and e.layout.tensor > 1 and not e.sequence_parallel:
        message = f"EP = {e.layout.expert} and TP = {e.layout.tensor} without sequence parallelism"
        yield Violation(message, ("sequence_parallel",), choices("sequence_parallel", [True]))


ONE_QUEUE_BY_LAYOUT = (nvidia("0.12"), rocm("0.15"))
"""Before these, sequence parallelism or the asynchronous all-reduce of TP asked for one queue, not the layout."""


QUEUES = "env.CUDA_DEVICE_MAX_CONNECTIONS"


def _queues(e: Effective) -> str:
    return f"CUDA_DEVICE_MAX_CONNECTIONS = {e.environment.get('CUDA_DEVICE_MAX_CONNECTIONS') or 'unset'}"


def _has_one_queue(e: Effective) -> bool:
    return e.environment.get("CUDA_DEVICE_MAX_CONNECTIONS") == "1"


@rule("MW112", "CUDA_DEVICE_MAX_CONNECTIONS is 1 with TP or CP", checked="validate_args", spans=ONE_QUEUE_BY_LAYOUT)
def one_queue(e: Effective) -> Iterator[Violation]:
    is_exempt = e.use_torch_fsdp2 or e.use_megatron_fsdp or e.use_custom_fsdp or e.overlap_moe_expert_parallel_comm
    is_blackwell = e.gpu is not None and e.gpu.arch.startswith("sm_10")
    if e.layout.tensor * e.layout.context > 1 and not _has_one_queue(e) and not is_exempt and not is_blackwell:
        yield Violation(f"{_queues(e)} with TP x CP > 1: Megatron wants 1", (QUEUES, TP, CP), choices(QUEUES, ["1"]))


@rule("MW113", "CUDA_DEVICE_MAX_CONNECTIONS is 1 with sequence parallelism or an asynchronous all-reduce",
      checked="validate_args", spans=(nvidia(until="0.12"), rocm(until="0.15")))  # fmt: skip
def one_queue_for_overlap(e: Effective) -> Iterator[Violation]:
    if _has_one_queue(e):
        return
    for dest in ("sequence_parallel", "async_tensor_model_parallel_allreduce"):
        if e.values.get(dest):
            yield Violation(f"{_queues(e)} with {dest}: Megatron wants 1", (QUEUES, dest), choices(QUEUES, ["1"]))
            return


@rule("MW114", "CUDA_DEVICE_MAX_CONNECTIONS is not 1 with fully sharded data parallel", checked="validate_args",
      spans=ONE_QUEUE_BY_LAYOUT)  # fmt: skip
def many_queues(e: Effective) -> Iterator[Violation]:
    for dest in ("use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp"):
        if e.values.get(dest) and _has_one_queue(e):
            message = f"CUDA_DEVICE_MAX_CONNECTIONS = 1 with {dest}: Megatron refuses it"
            yield Violation(message, (QUEUES, dest), choices(QUEUES, [None]))


needs("MW120", "ROCm's fork wants sequence parallelism with latent attention and TP",
      when={"multi_latent_attention": ON, TP: tuple(range(2, 129))}, need={"sequence_parallel": ON},
      spans=(rocm("0.10", "0.16"),))  # fmt: skip
needs("MW121", "TP communication can only overlap with sequence parallelism",
      when={"tp_comm_overlap": ON}, need={"sequence_parallel": ON})  # fmt: skip
