"""How the model and the batch are spread over the ranks."""

from __future__ import annotations

from dataclasses import dataclass

from megawrap.config.field import arg


@dataclass(kw_only=True, slots=True)
class Parallel:
    """Parallel sizes and the data-parallel options. The data-parallel size is what remains of the world size."""

    tp: int = arg("--tensor-model-parallel-size", 1)
    """Tensor-parallel size: ranks that share each layer. Keep it within one node."""
    pp: int = arg("--pipeline-model-parallel-size", 1)
    """Pipeline-parallel size: stages that the layers are divided into."""
    cp: int = arg("--context-parallel-size", 1)
    """Context-parallel size: ranks that share each sequence (needs Transformer Engine)."""
    ep: int = arg("--expert-model-parallel-size", 1)
    """Expert-parallel size: ranks that share the experts of a layer."""
    etp: int | None = arg("--expert-tensor-parallel-size")
    """Tensor-parallel size inside an expert; Megatron takes tp when not set."""
    layers_per_virtual_stage: int | None = arg("--num-layers-per-virtual-pipeline-stage")
    """Interleaved pipeline: layers in each virtual stage; smaller means less bubble and more communication."""
    sp: bool | None = arg("--sequence-parallel")
    """Sequence parallelism: norms and dropouts split along the sequence over the tensor-parallel ranks."""
    cp_comm_type: list[str] | None = arg("--cp-comm-type")
    """How context parallelism exchanges keys and values: p2p, a2a, allgather, a2a+p2p; one for all layers, or one for
    each."""
    hierarchical_cp_sizes: list[int] | None = arg("--hierarchical-context-parallel-sizes")
    """a2a+p2p only: ranks that exchange by a2a, and groups of them that exchange by p2p; their product is cp."""
    moe_flex_backend: str | None = arg("--moe-flex-dispatcher-backend")
    """What carries the tokens with moe_token_dispatcher_type=flex: deepep, hybridep, ncclep."""
    distributed_optimizer: bool | None = arg("--use-distributed-optimizer")
    """Optimizer state sharded over the data-parallel ranks (ZeRO stage 1)."""
    overlap_grad_reduce: bool | None = arg("--overlap-grad-reduce")
    """Reduce gradients while the backward pass still runs."""
    overlap_param_gather: bool | None = arg("--overlap-param-gather")
    """Gather parameters while the forward pass already runs; needs distributed_optimizer and overlap_grad_reduce."""
    fsdp2: bool | None = arg("--use-torch-fsdp2")
    """PyTorch's fully sharded data parallel (ZeRO stage 3)."""
    megatron_fsdp: bool | None = arg("--use-megatron-fsdp")
    """Megatron's own fully sharded data parallel; custom FSDP in releases before 0.14."""
    distributed_backend: str | None = arg("--distributed-backend")
    """nccl (RCCL on AMD) or gloo."""
    distributed_timeout_minutes: int | None = arg("--distributed-timeout-minutes")
    """Minutes that a collective may wait before the run is given up."""
