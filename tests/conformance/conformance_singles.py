"""Every argument of a surface, changed alone to each of a few values, in a legal configuration of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance_cases import Arguments, Case

from megawrap.megatron.surface.argument import Argument
from megawrap.megatron.surface.surface import Surface

DENSE: Arguments = {
    "num_layers": 8,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "ffn_hidden_size": 4096,
    "max_position_embeddings": 2048,
    "seq_length": 2048,
    "position_embedding_type": "rope",
    "swiglu": True,
    "add_bias_linear": False,
    "normalization": "RMSNorm",
    "untie_embeddings_and_output_weights": True,
    "tokenizer_type": "NullTokenizer",
    "vocab_size": 32000,
    "mock_data": True,
    "split": "99,1,0",
    "use_distributed_optimizer": True,
    "overlap_grad_reduce": True,
    "micro_batch_size": 1,
    "global_batch_size": 32,
    "train_iters": 100,
    "eval_interval": 100,
    "eval_iters": 0,
    "lr": 3e-4,
    "min_lr": 3e-5,
    "lr_warmup_iters": 10,
    "bf16": True,
}
EXPERTS: Arguments = {
    "num_experts": 8,
    "expert_model_parallel_size": 2,
    "expert_tensor_parallel_size": 1,
    "moe_router_topk": 2,
    "moe_router_load_balancing_type": "aux_loss",
    "moe_aux_loss_coeff": 1e-2,
    "moe_token_dispatcher_type": "alltoall",
    "moe_grouped_gemm": True,
    "moe_ffn_hidden_size": 1024,
}
BASES: dict[str, Arguments] = {
    "dense": DENSE,
    "split": {**DENSE, "tensor_model_parallel_size": 2, "sequence_parallel": True, "pipeline_model_parallel_size": 2},
    "experts": {**DENSE, **EXPERTS},
    "latent": {**DENSE, "multi_latent_attention": True},
}
WORLD_SIZE = 8
NEVER = frozenset({
    # These end the process, read files, or look at the machine.
    "help", "yaml_cfg", "config_logger_dir", "exit_on_missing_checkpoint", "use_checkpoint_args", "load",
    "data_args_path", "per_split_data_args_path", "spec", "straggler_ctrlr_port",
    "enable_msc", "rl_offload_kv_cache_during_training",  # packages that the machine has or has not
})  # fmt: skip


def singles(surface: Surface) -> Iterator[Case]:
    """A case for each base, argument and value, numbered in this order."""
    number = 0
    for base, arguments in BASES.items():
        kept = {dest: value for dest, value in arguments.items() if surface.option(dest) is not None}
        for one in surface.arguments:
            if one.dest in NEVER:
                continue
            for value in _values(one):
                changed = {**kept, one.dest: value}
                yield Case(
                    number, changed, WORLD_SIZE, {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, (base, f"{one.dest}={value}")
                )
                number += 1


def _values(one: Argument) -> list[Any]:
    if not one.takes_value:
        return [not one.default]
    values: list[Any] = list(
        one.choices or {"int": (-1, 0, 1, 2, 3, 64), "float": (-0.5, 0.0, 0.5, 1.5)}.get(one.type or "", ())
    )
    return [[value] for value in values] if one.nargs in ("+", "*") else values
