"""One forward step: the batch to every rank that needs it, the model, the loss."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from megatron.core import mpu
from megatron.core.rerun_state_machine import get_rerun_state_machine
from megatron.core.utils import (
    StragglerDetector,
    get_attr_wrapped_model,
    get_batch_on_this_cp_rank,
    get_batch_on_this_tp_rank,
)
from megatron.training import get_args, get_timers

from megawrap.megatron.embedded.ranks import predicts_ahead, reads_data

Batch = dict[str, Any]
KEYS = ("tokens", "labels", "loss_mask", "position_ids", "attention_mask")
# A loss this many times the largest seen counts as a spike (Megatron-LM core_v0.19.0 pretrain_gpt.py).
SPIKE_FACTOR = 10

_stragglers = StragglerDetector()


def forward_step(data: Iterator[Batch], model: torch.nn.Module) -> tuple[torch.Tensor, Callable[..., Any]]:
    """The model's output for the next micro-batch of ``data``, and the function that makes it a loss."""
    timers = get_timers()
    timers("batch-generator", log_level=2).start()
    with _stragglers(bdata=True):
        batch = next_batch(data, get_attr_wrapped_model(model, "vp_stage"))
    timers("batch-generator").stop()
    with _stragglers:
        output = model(
            batch["tokens"],
            batch["position_ids"],
            batch["attention_mask"],
            labels=batch["labels"],
            loss_mask=batch["loss_mask"],
        )
    return output, functools.partial(loss, batch["loss_mask"])


def next_batch(data: Iterator[Batch], vp_stage: int | None) -> Batch:
    """The next micro-batch, as this rank needs it: tensors [micro_batch_size, seq_length / CP] int64 (the loss mask
    float32), or ``None`` for each on a stage in the middle of the pipeline."""
    if not reads_data(vp_stage):
        return dict.fromkeys(KEYS)
    args = get_args()
    batch: Batch = {}
    if mpu.get_tensor_model_parallel_rank() == 0:
        read = next(data)
        batch = {key: read[key].cuda(non_blocking=True) if read.get(key) is not None else None for key in KEYS}
    batch = get_batch_on_this_tp_rank(
        batch,
        has_cu_seqlens=False,
        is_hybrid_cp=False,
        create_attention_mask_in_dataloader=args.create_attention_mask_in_dataloader,
        broadcast_src_rank=mpu.get_tensor_model_parallel_src_rank(),
        broadcast_group=mpu.get_tensor_model_parallel_group(),
        cp_size=args.context_parallel_size,
        tp_rank=mpu.get_tensor_model_parallel_rank(),
        micro_batch_size=args.micro_batch_size,
        seq_length=args.seq_length,
        mtp_on_this_rank=predicts_ahead(vp_stage),
        pipeline_model_parallel_size=args.pipeline_model_parallel_size,
        is_pipeline_first_stage=mpu.is_pipeline_first_stage(),
        is_pipeline_last_stage=mpu.is_pipeline_last_stage(),
    )
    return dict(get_batch_on_this_cp_rank(batch, is_hybrid_cp=False, cp_group=mpu.get_context_parallel_group()))


def loss(loss_mask: torch.Tensor, output: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
    """Sum of the masked losses of a micro-batch, its number of tokens, and what the log reports."""
    mask = loss_mask.view(-1).float()
    total = torch.sum(output.view(-1).float() * mask)
    num_tokens = mask.sum().clone().detach().to(torch.int)
    _validate(total)
    return total, num_tokens, {"lm loss": torch.cat([total.clone().detach().view(1), num_tokens.view(1)])}


def _validate(total: torch.Tensor) -> None:
    """Hand the loss to Megatron's rerun machine, which ends the run on NaN, infinity or a spike, as asked."""
    args, machine = get_args(), get_rerun_state_machine()
    checks: list[tuple[Callable[..., Any], str, bool]] = []
    if args.check_for_nan_in_loss_and_grad:
        checks.append((torch.isnan, "found NaN in local forward loss calculation", True))
        checks.append((torch.isinf, "found Inf in local forward loss calculation", True))
    if args.check_for_spiky_loss:
        unexpected = functools.partial(machine.is_unexpectedly_large, threshold=SPIKE_FACTOR, context="loss")
        checks.append((unexpected, "Spiky loss", False))
    for rejected, message, is_fatal in checks:
        machine.validate_result(result=total, rejection_func=rejected, message=message, tolerance=0.0, fatal=is_fatal)
