"""Parallel sizes as Megatron derives them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from megawrap.megatron.stages import virtual_size


@dataclasses.dataclass(frozen=True)
class Layout:
    """How ``world_size`` ranks are arranged; ``virtual`` counts the virtual stages on a rank. ``data`` and
    ``expert_data`` are ``None`` when the sizes do not divide."""

    world_size: int
    tensor: int
    pipeline: int
    virtual: int
    context: int
    expert: int
    expert_tensor: int
    weight_shards: int
    data: int | None
    expert_data: int | None
    micro_batches: int | None

    @classmethod
    def of(cls, values: Mapping[str, Any], world_size: int) -> Layout:
        """From parsed Megatron arguments (``dest`` → value)."""
        tensor, pipeline = values["tensor_model_parallel_size"], values["pipeline_model_parallel_size"]
        context, expert = values.get("context_parallel_size") or 1, values.get("expert_model_parallel_size") or 1
        expert_tensor = values.get("expert_tensor_parallel_size") or tensor
        # Ranks beyond TP that hold parts of the weights only (tensor_parallel_num_weight_shards).
        shards = max(1, (values.get("tensor_parallel_num_weight_shards") or tensor) // max(1, tensor))
        data = _quotient(world_size, tensor * pipeline * context * shards)
        return cls(
            world_size=world_size,
            tensor=tensor,
            pipeline=pipeline,
            virtual=virtual_size(values, pipeline),
            context=context,
            expert=expert,
            expert_tensor=expert_tensor,
            weight_shards=shards,
            data=data,
            expert_data=_quotient(world_size, expert_tensor * expert * pipeline),
            micro_batches=_micro_batches(values, data),
        )


def smallest_world(values: Mapping[str, Any]) -> int:
    """The fewest ranks that a layout can have: a multiple of TP x PP x CP and of ETP x EP x PP."""
    one = Layout.of(values, 1)
    size = one.pipeline * math.lcm(one.tensor * one.context * one.weight_shards, one.expert_tensor * one.expert)
    return max(1, size)  # where a size is not one (MW100)


def _micro_batches(values: Mapping[str, Any], data: int | None) -> int | None:
    micro, batch = values.get("micro_batch_size"), values.get("global_batch_size")
    if not micro or data is None:
        return None
    return 1 if batch is None else _quotient(batch, micro * data)


def _quotient(number: int, divisor: int) -> int | None:
    return number // divisor if divisor > 0 and number % divisor == 0 else None
