"""Configurations for the conformance test: a legal one, with up to three things changed that may or may not be legal.

Arguments are named as Megatron's parser stores them; a value ``True`` or ``False`` is a switch.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

Arguments = dict[str, Any]
Mutation = Callable[[random.Random, Arguments], Arguments]


@dataclasses.dataclass(frozen=True)
class Case:
    """One configuration. ``mutations`` names what was changed, for the report."""

    number: int
    arguments: Arguments
    world_size: int
    environment: dict[str, str | None]
    mutations: tuple[str, ...]


def cases(seed: int, count: int, *, has: Callable[[str], bool]) -> Iterator[Case]:
    """``count`` cases of ``seed``; ``has`` tells whether the target has an argument."""
    for number in range(count):
        yield case(seed, number, has=has)


def case(seed: int, number: int, *, has: Callable[[str], bool]) -> Case:
    """Case ``number`` of ``seed``."""
    rng = random.Random(f"{seed}/{number}")
    arguments, world_size = _legal(rng)
    names = rng.sample(sorted(MUTATIONS), rng.choices((0, 1, 2, 3), (2, 4, 3, 1))[0])
    environment, legal = _environment(rng), dict(arguments)
    for name in names:
        changed = MUTATIONS[name](rng, legal)
        environment.update({key[1:]: value for key, value in changed.items() if key.startswith("$")})
        world_size = changed.pop("world_size", world_size)
        arguments.update({key: value for key, value in changed.items() if not key.startswith("$")})
    kept = {dest: value for dest, value in arguments.items() if value is not None and has(dest)}
    return Case(number, kept, world_size, environment, tuple(names))


def _legal(rng: random.Random) -> tuple[Arguments, int]:
    tensor, pipeline, context = rng.choice((1, 1, 2, 4, 8)), rng.choice((1, 1, 2, 4)), rng.choice((1, 1, 1, 2))
    heads, dimension = rng.choice((8, 16, 32, 64)), rng.choice((64, 128))
    arguments: Arguments = {
        "num_layers": pipeline * rng.choice((4, 8, 12)),
        "hidden_size": heads * dimension,
        "num_attention_heads": heads,
        "ffn_hidden_size": rng.choice((None, 4096, 11008, 14336)),
        "max_position_embeddings": 4096,
        "seq_length": rng.choice((1024, 2048, 4096)),
        "position_embedding_type": "rope",
        "swiglu": rng.random() < 0.8,
        "add_bias_linear": rng.random() < 0.2,
        "normalization": "RMSNorm",
        "untie_embeddings_and_output_weights": rng.random() < 0.7,
        "tokenizer_type": "NullTokenizer",
        "vocab_size": 32000,
        "mock_data": True,
        "split": "99,1,0",
        "tensor_model_parallel_size": tensor,
        "pipeline_model_parallel_size": pipeline,
        "context_parallel_size": context,
        "sequence_parallel": tensor > 1,
        "use_distributed_optimizer": rng.random() < 0.7,
        "overlap_grad_reduce": rng.random() < 0.5,
        "micro_batch_size": rng.choice((1, 2, 4)),
        "train_iters": 1000,
        "eval_interval": 1000,
        "eval_iters": 0,
        "lr": 3e-4,
        "min_lr": 3e-5,
        "lr_warmup_iters": 10,
        "bf16": True,
    }
    if rng.random() < 0.4:
        arguments |= {"group_query_attention": True, "num_query_groups": max(tensor, 8)}
    world_size = tensor * pipeline * context * rng.choice((1, 2, 4))
    if rng.random() < 0.4:
        expert = rng.choice((1, 2, 4))
        arguments |= _mixture(rng, expert)
        world_size = max(world_size, tensor * pipeline * context * expert)
    if arguments.get("moe_grouped_gemm") and arguments["add_bias_linear"]:
        arguments["bias_dropout_fusion"] = False  # otherwise it dies when the layers are built (MW451)
    data = world_size // (tensor * pipeline * context)
    arguments["global_batch_size"] = arguments["micro_batch_size"] * data * rng.choice((4, 8, 16))
    return arguments, world_size


def _mixture(rng: random.Random, expert: int) -> Arguments:
    return {
        "num_experts": expert * rng.choice((2, 4, 8)),
        "expert_model_parallel_size": expert,
        "expert_tensor_parallel_size": 1,
        "moe_router_topk": 2,
        "moe_router_load_balancing_type": rng.choice(("aux_loss", "seq_aux_loss", "none")),
        "moe_aux_loss_coeff": 1e-2,
        "moe_token_dispatcher_type": rng.choice(("allgather", "alltoall")),
        "moe_grouped_gemm": rng.random() < 0.5,
        "moe_ffn_hidden_size": rng.choice((None, 1024, 2048)),
    }


def _environment(rng: random.Random) -> dict[str, str | None]:
    """CUDA_DEVICE_MAX_CONNECTIONS as a launch sets it, and sometimes not."""
    names = dict.fromkeys(
        (
            "NVTE_FLASH_ATTN",
            "NVTE_FUSED_ATTN",
            "NVTE_UNFUSED_ATTN",
            "NCCL_ALGO",
            "PYTORCH_CUDA_ALLOC_CONF",
            "NVTE_APPLY_QK_LAYER_SCALING",
            "NCCL_GRAPH_REGISTER",
            "NVTE_ALLOW_NONDETERMINISTIC_ALGO",
            "CUBLAS_WORKSPACE_CONFIG",
            "NVTE_CPU_OFFLOAD_V1",
        )
    )
    return {**names, "CUDA_DEVICE_MAX_CONNECTIONS": None if rng.random() < 0.03 else "1"}


def _set(**values: Any) -> Mutation:
    """Each argument takes its value, or one of a list of values."""
    return lambda rng, _: {
        dest: rng.choice(value) if isinstance(value, list) else value for dest, value in values.items()
    }


FSDP_ENVIRONMENT = {"$CUDA_DEVICE_MAX_CONNECTIONS": [None, None, None, "8", "1"]}


def _fsdp2(rng: random.Random, a: Arguments) -> Arguments:
    wrong = rng.random() < 0.4
    return {
        "use_torch_fsdp2": True,
        "use_distributed_optimizer": wrong and rng.random() < 0.5,
        "gradient_accumulation_fusion": wrong and rng.random() < 0.5,
        "untie_embeddings_and_output_weights": not (wrong and rng.random() < 0.5),
        "ckpt_format": rng.choice(("torch_dist", "torch_dist", "torch_dcp", "torch")),
        "pipeline_model_parallel_size": a["pipeline_model_parallel_size"] if wrong else 1,
        "expert_model_parallel_size": a.get("expert_model_parallel_size") if wrong else 1,
        "$CUDA_DEVICE_MAX_CONNECTIONS": rng.choice(FSDP_ENVIRONMENT["$CUDA_DEVICE_MAX_CONNECTIONS"]),
    }


def _megatron_fsdp(rng: random.Random, _: Arguments) -> Arguments:
    return {
        "use_megatron_fsdp": True,
        "ckpt_format": rng.choice(("fsdp_dtensor", "fsdp_dtensor", "fsdp_dtensor", "torch_dist")),
        "use_distributed_optimizer": rng.random() < 0.8,
        "data_parallel_sharding_strategy": rng.choice(("no_shard", "optim", "optim_grads", "optim_grads_params")),
        "$CUDA_DEVICE_MAX_CONNECTIONS": rng.choice(FSDP_ENVIRONMENT["$CUDA_DEVICE_MAX_CONNECTIONS"]),
    }


def _latent(rng: random.Random, a: Arguments) -> Arguments:
    return {
        "multi_latent_attention": True,
        "q_lora_rank": rng.choice((None, 512)),
        "group_query_attention": rng.random() < 0.1,
        "apply_rope_fusion": rng.random() < 0.5,
        "rope_type": rng.choice((None, "yarn", "rope")),
        "qk_layernorm": True,
        "sequence_parallel": a["sequence_parallel"] and rng.random() < 0.9,
    }


def _interleaved(rng: random.Random, a: Arguments) -> Arguments:
    return {rng.choice(("num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank")):
            rng.choice((1, 2, 3, 4)), "overlap_p2p_comm": rng.choice((None, None, False))}  # fmt: skip


def _pipeline_layout(rng: random.Random, a: Arguments) -> Arguments:
    layers, pipeline = a["num_layers"], a["pipeline_model_parallel_size"]
    each = layers // (pipeline * 2)
    last = layers - each * (pipeline * 2 - 1)
    text = "|".join(["E" + "t" * each, *["t" * each] * (pipeline * 2 - 2), "t" * last + "L"])
    return {"pipeline_model_parallel_layout": rng.choice((text, text, text[1:], text.replace("tL", "L"), text + "|t"))}


def _samples(rng: random.Random, a: Arguments) -> Arguments:
    return {
        "train_samples": rng.choice((100000, 1000)),
        "train_iters": rng.choice((None, None, 1000)),
        "lr_warmup_iters": rng.choice((None, None, 0, 10)),
        "lr_warmup_samples": rng.choice((None, 100, 200000)),
        "lr_decay_samples": rng.choice((None, 50000)),
        "rampup_batch_size": rng.choice((None, None, [a["global_batch_size"] // 2, a["global_batch_size"] // 4, 1000],
                                         [3, 3, 100])),
    }  # fmt: skip


def _fp8(rng: random.Random, _: Arguments) -> Arguments:
    return {
        "fp8": rng.choice(("hybrid", "e4m3")),
        "fp8_recipe": rng.choice(("delayed", "tensorwise", "blockwise", "mxfp8", "custom")),
        "fp8_param_gather": rng.random() < 0.4,
        "first_last_layers_bf16": rng.random() < 0.2,
    }


def _full_recompute(rng: random.Random, _: Arguments) -> Arguments:
    return {
        "recompute_granularity": "full",
        "recompute_method": rng.choice(("uniform", "block", "uniform", None)),
        "recompute_num_layers": rng.choice((1, 1, 2, None)),
    }


def _selective(rng: random.Random, _: Arguments) -> Arguments:
    known = ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts")
    return {
        "recompute_granularity": "selective",
        "recompute_modules": rng.sample(known, rng.randint(1, 2)),
        "recompute_method": rng.choice((None, None, None, "block")),
        "recompute_num_layers": rng.choice((None, None, None, 1)),
    }


def _graphs(rng: random.Random, _: Arguments) -> Arguments:
    """Whole layers or some modules, mostly with what may be recomputed, offloaded or dropped out in them."""
    known = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "full", "full_iteration")
    words = rng.sample(known, rng.choices((0, 1, 2), (3, 4, 2))[0])
    recomputed = rng.choice((None, None, "selective", "selective", "full"))
    return {
        "cuda_graph_impl": rng.choice(("none", "local", "transformer_engine", "transformer_engine", "full_iteration")),
        "enable_cuda_graph": rng.random() < 0.1,
        "external_cuda_graph": rng.random() < 0.1,
        "cuda_graph_modules": words or None,
        "recompute_granularity": recomputed,
        "recompute_method": "uniform" if recomputed == "full" else None,
        "recompute_num_layers": 1 if recomputed == "full" else None,
        "recompute_modules": rng.choice((None, ["mlp"], ["moe"], ["layernorm"], ["core_attn", "mlp"])),
        "attention_dropout": rng.choice((None, 0.0)),
        "hidden_dropout": rng.choice((None, 0.0)),
        "moe_input_jitter_eps": rng.choice((None, None, None, 0.1)),
        "cpu_offloading_num_layers": rng.choice((None, None, None, None, 1)),
        "check_for_nan_in_loss_and_grad": rng.random() < 0.5,
        "te_rng_tracker": rng.choice((None, True)),
    }


def _older_graphs(rng: random.Random, a: Arguments) -> Arguments:
    """The same before the releases that list modules (one word), or with their lists."""
    words = [word for word in _graphs(rng, a)["cuda_graph_modules"] or () if word in ("attn", "full", "full_iteration")]
    known = {"cuda_graph_impl": rng.choice(("none", "local", "transformer_engine")), "cuda_graph_modules": None}
    return _graphs(rng, a) | known | {"cuda_graph_scope": words[0] if words else None}


def _groups(rng: random.Random, _: Arguments) -> Arguments:
    return {
        "moe_router_num_groups": rng.choice((None, 1, 2, 3, 4)),
        "moe_router_group_topk": rng.choice((1, 2, 3)),
        "moe_router_score_function": rng.choice(("sigmoid", "softmax")),
        "moe_router_enable_expert_bias": rng.random() < 0.5,
    }


def _uneven(rng: random.Random, a: Arguments) -> Arguments:
    pipeline = max(2, a["pipeline_model_parallel_size"])
    middle = a["num_layers"] // pipeline
    if rng.random() < 0.7:  # one end takes what the others leave
        return {"pipeline_model_parallel_size": pipeline, "world_size": a["tensor_model_parallel_size"] * pipeline * 8,
                "global_batch_size": 1024,
                "decoder_first_pipeline_num_layers": a["num_layers"] - middle * (pipeline - 1)}  # fmt: skip
    return {
        "decoder_first_pipeline_num_layers": rng.choice((None, 1, 2, 3, 4)),
        "decoder_last_pipeline_num_layers": rng.choice((None, 1, 2, 3, 4, 0)),
    }


def _schedule(rng: random.Random, _: Arguments) -> Arguments:
    return {
        "lr_decay_style": rng.choice(("WSD", "cosine", "constant")),
        "lr_wsd_decay_iters": rng.choice((None, 100)),
        "lr_warmup_fraction": rng.choice((None, 0.01)),
        "lr_warmup_iters": rng.choice((0, 10)),
        "lr_decay_iters": rng.choice((None, 5, 500)),
    }


MUTATIONS: dict[str, Mutation] = {
    "world": lambda rng, a: {"world_size": rng.choice((1, 2, 4, 6, 8, 12, 16, 64))},
    "tensor": _set(tensor_model_parallel_size=[1, 2, 3, 4, 8, 16], sequence_parallel=[True, False]),
    "pipeline": _set(pipeline_model_parallel_size=[1, 2, 3, 4, 8]),
    "context": _set(context_parallel_size=[1, 2, 3, 4], seq_length=[1024, 1026, 4096]),
    "expert": _set(expert_model_parallel_size=[1, 2, 3, 4, 8], expert_tensor_parallel_size=[None, 1, 2]),
    "layers": _set(num_layers=[4, 7, 12, 30]),
    "heads": _set(num_attention_heads=[6, 8, 12, 30, 32], kv_channels=[None, 64]),
    "query groups": _set(group_query_attention=True, num_query_groups=[1, 2, 3, 4, 8, 16]),
    "global batch": lambda rng, a: {"global_batch_size": rng.choice((None, 1, 3, 16, 100, 256))},
    "micro batch": _set(micro_batch_size=[1, 3, 0]),
    "sequence parallel off": _set(sequence_parallel=False),
    "sequence parallel on": _set(sequence_parallel=True),
    "sequence": _set(seq_length=[512, 1024, 4096, 8192]),
    "positions": _set(position_embedding_type=["learned_absolute", "none", "rope", "mrope"],
                      add_position_embedding=[None, False]),
    "dense of experts": _set(num_experts=[None, 0]),
    "experts": _set(num_experts=[2, 3, 8, 12]),
    "one visit": _set(moe_router_topk=1, moe_router_pre_softmax=[True, False]),
    "expert groups": _groups,
    "capacity": _set(moe_expert_capacity_factor=[1.0, -1.0], moe_pad_expert_input_to_capacity=[True, False],
                     moe_router_load_balancing_type=["aux_loss", "sinkhorn", "none"], moe_aux_loss_coeff=[0.0]),
    "padding": _set(moe_pad_expert_input_to_capacity=True),
    "shared experts": _set(moe_shared_expert_intermediate_size=[1024, 0, -1], moe_shared_expert_overlap=[True, False]),
    "dispatcher": _set(moe_token_dispatcher_type=["allgather", "alltoall"]),
    "permute fusion": _set(moe_permute_fusion=True),
    "expert overlap": _set(overlap_moe_expert_parallel_comm=True),
    "late gradients": _set(delay_wgrad_compute=True, overlap_moe_expert_parallel_comm=[True, False]),
    "expert width": _set(moe_ffn_hidden_size=[1024, 1000]),
    "router padding": _set(moe_router_padding_for_fp8=True),
    "expert biases": _set(add_bias_linear=True, expert_tensor_parallel_size=[None, 1]),
    "latent attention": _latent,
    "multi-token prediction": _set(mtp_num_layers=[1, 2]),
    "interleaved": _interleaved,
    "pipeline layout": _pipeline_layout,
    "uneven stages": _uneven,
    "counted embedding": _set(account_for_embedding_in_pipeline_split=[True, False],
                              account_for_loss_in_pipeline_split=True),
    "fp8": _fp8,
    "fp8 parameters": _set(fp8_param_gather=True),
    "fp16": _set(fp16=True, bf16=[True, False, False]),
    "fp32": _set(bf16=False),
    "fp32 residual": _set(fp32_residual_connection=True),
    "fp16 cross entropy": _set(fp16_lm_cross_entropy=True),
    "bf16 gradients": _set(grad_reduce_in_bf16=True),
    "main gradients": _set(main_grads_dtype=["bf16", "fp32"], use_precision_aware_optimizer=[True, False]),
    "precision-aware": _set(use_precision_aware_optimizer=True, optimizer=["adam", "sgd"]),
    "states on the CPU": _set(optimizer_cpu_offload=True, use_precision_aware_optimizer=[True, True, False]),
    "full recompute": _full_recompute,
    "selective recompute": _selective,
    "recompute activations": _set(recompute_activations=True),
    "distributed activations": _set(distribute_saved_activations=True),
    "offload layers": _set(cpu_offloading_num_layers=[1, 100]),
    "fsdp2": _fsdp2,
    "megatron fsdp": _megatron_fsdp,
    "gather overlap": _set(overlap_param_gather=True, overlap_grad_reduce=[True, True, False]),
    "gather in step": _set(overlap_param_gather_with_optimizer_step=True, overlap_param_gather=True,
                           overlap_grad_reduce=True, use_distributed_optimizer=True,
                           ckpt_format=["torch", "torch_dist"]),
    "checkpoint format": _set(ckpt_format=["torch", "torch_dist", "torch_dcp", "fsdp_dtensor"]),
    "no gloo": _set(use_gloo_process_groups=False, ckpt_format=["torch", "torch_dist"]),
    "save": _set(save="/tmp/never", save_interval=[None, 10, 0], save_retain_interval=[None, 20, 15]),
    "buckets": _set(ddp_num_buckets=[4, 4, 4, 4, 4, 0], ddp_bucket_size=[None, None, None, None, 1000000]),
    "instances": _set(num_distributed_optimizer_instances=[1, 2, 3], use_distributed_optimizer=True),
    "muon": _set(optimizer="muon"),
    "learning rate": _set(min_lr=[1e-3, 0.0, -1.0], lr_warmup_init=[0.0, 1.0]),
    "warm-up": _set(lr_warmup_iters=[0, 999, 1000, 2000]),
    "schedule": _schedule,
    "samples": _samples,
    "no length": _set(train_iters=None),
    "weight decay": _set(weight_decay_incr_style=["linear", "constant"], start_weight_decay=[None, 0.0, 0.2],
                         end_weight_decay=[None, 0.1]),
    "checkpoint schedule": _set(override_opt_param_scheduler=True, use_checkpoint_opt_param_scheduler=[True, False]),
    "two sources": _set(data_path=[["/tmp/never"]], mock_data=[True, False]),
    "memory log": _set(log_memory_interval=[5, 10], log_interval=[1, 3, 10]),
    "evaluation batch": _set(eval_global_batch_size=[8, 64, 7], eval_micro_batch_size=[None, 1, 3]),
    "activation": _set(squared_relu=True, swiglu=[True, False], bias_gelu_fusion=[True, False]),
    "quick geglu": _set(quick_geglu=True, swiglu=[True, False]),
    "te activation": _set(use_te_activation_func=True, bias_swiglu_fusion=[True, False]),
    "cross entropy": _set(cross_entropy_loss_fusion=True, cross_entropy_fusion_impl=["te", "native"]),
    "deterministic": _set(deterministic_mode=True, **{"$NCCL_ALGO": [None, "Ring", "Tree", "Ring,^NVLS"],
                          "$NVTE_ALLOW_NONDETERMINISTIC_ALGO": [None, "0", "1"]}),
    "cuda graphs": _set(cuda_graph_impl=["none", "local", "transformer_engine"],
                        **{"$PYTORCH_CUDA_ALLOC_CONF": [None, "expandable_segments:True"]}),
    "graphs of modules": _graphs,
    "graphs of a scope": _older_graphs,
    "layer scaling": _set(apply_query_key_layer_scaling=True, **{"$NVTE_APPLY_QK_LAYER_SCALING": "1"}),
    "rope type": _set(rope_type=["rope", "yarn"]),
    "interleaved rope": _set(rotary_interleaved=True, apply_rope_fusion=[True, False]),
    "no rope pattern": _set(no_rope_freq=[2, 3, 4]),
    "clip": _set(qk_clip=True, qk_clip_alpha=[0.5, 1.5]),
    "communication of CP": _set(cp_comm_type=[["p2p"], ["a2a"], ["p2p", "a2a"], ["a2a+p2p"]],
                                hierarchical_context_parallel_sizes=[None, [2, 1], [2, 2]]),
    "tp overlap": _set(tp_comm_overlap=True),
    "embedding gradients": _set(defer_embedding_wgrad_compute=True, gradient_accumulation_fusion=[True, False]),
    "upcycling": _set(moe_use_upcycling=True),
    "builder threads": _set(num_dataset_builder_threads=[0, 1, 4]),
    "fill in the middle": _set(fim_data=True, fim_rate=[0.5, None]),
    "conversion": _set(ckpt_convert_format="torch_dist", ckpt_convert_save=[*["/tmp/never"] * 7, None],
                       load="/tmp/never"),
    "main parameters": _set(load_main_params_from_ckpt=True, load_optim=[None, False]),
    "queues": _set(**{"$CUDA_DEVICE_MAX_CONNECTIONS": [None, "1", "8"]}),
    "tied": _set(untie_embeddings_and_output_weights=False),
    "async save": _set(async_save=True),
    "weight shards": _set(tensor_parallel_num_weight_shards=[1, 2, 3, 4, 8]),
    "limits of shards": _set(tensor_parallel_num_weight_shards=[2, 4], ddp_average_in_collective=[None, None, True],
                             ckpt_format=["torch", "torch_dist"], fp8_recipe=["delayed", "delayed", "mxfp8"],
                             fp8_param_gather=[None, True], reuse_grad_buf_for_mxfp8_param_ag=[None, True]),
    "backends": _set(moe_token_dispatcher_type=["flex", "alltoall"], moe_flex_dispatcher_backend=["deepep", "hybridep"],
                     moe_enable_deepep=[None, True], moe_shared_expert_intermediate_size=[None, 1024],
                     moe_shared_expert_overlap=[None, True]),
    "overlapped experts": _set(overlap_moe_expert_parallel_comm=True, moe_layer_recompute=[None, True],
                               mtp_num_layers=[None, 0, 1], moe_token_dispatcher_type="alltoall"),
    "sparse attention": _set(experimental_attention_variant="dsa", multi_latent_attention=True, apply_rope_fusion=False,
                             dsa_indexer_topk_freq=[1, 0], cp_comm_type=[None, ["allgather"]],
                             context_parallel_size=[1, 2]),
    "patterns": _set(moe_layer_freq=[None, "often", "[1] * 8", "2"], window_size=[None, "(128,0)", "[128,0]", "wide"],
                     window_attn_skip_freq=[None, "[1,", "2"], linear_attention_freq=[None, "x", "3"]),
    "offloaded experts": _set(fine_grained_activation_offloading=True,
                              offload_modules=[["moe_act"], ["fused_group_mlp"]],
                              use_transformer_engine_op_fuser=[None, True],
                              activation_offload_fraction=[None, 0.5, 1.5], recompute_granularity=[None, "selective"],
                              recompute_modules=[None, ["moe"]], **{"$NVTE_CPU_OFFLOAD_V1": "1"}),
    "hybrid context": _set(hybrid_context_parallel=True, calculate_per_token_loss=[True, False]),
    "fine-grained offload": _set(fine_grained_activation_offloading=True, offload_modules=[["core_attn"], ["attn_proj"],
                                 ["moe_act", "nothing"]], **{"$NVTE_CPU_OFFLOAD_V1": ["1", None]}),
}  # fmt: skip
