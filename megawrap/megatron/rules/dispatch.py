"""MW811–MW815, MW819, MW824–MW834, MW836–MW841: how tokens reach experts, grouped products, what overlaps. Sources:
TransformerConfig and dispatchers of Megatron-LM core_v0.19.0 and main."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.parallel import EP, PP
from megawrap.megatron.rules.registry import OFF, ON, SET, Violation, choices, needs, nvidia, rocm, rule, word

GROUPED = {"MW824": "moe_single_grouped_weight", "MW825": "moe_single_grouped_bias",
           "MW832": "moe_use_grouped_tensor"}  # fmt: skip
for number, dest in GROUPED.items():
    needs(number, "one weight for all experts of a rank is for their grouped product",
          when={dest: ON}, need={"moe_grouped_gemm": ON}, checked="TransformerConfig")  # fmt: skip
needs("MW826", "one weight for all experts of a rank is for Transformer Engine's fused operations",
      when={"moe_single_grouped_weight": ON}, need={"use_transformer_engine_op_fuser": ON},
      checked="TransformerConfig", spans=(nvidia("0.19"), rocm("0.19")))  # fmt: skip
needs("MW827", "one bias for all experts of a rank needs biases",
      when={"moe_single_grouped_bias": ON}, need={"add_bias_linear": ON}, checked="TransformerConfig")  # fmt: skip
needs("MW828", "NCCL's expert parallelism is a backend of the flexible dispatcher",
      when={"moe_flex_dispatcher_backend": ("ncclep",)}, need={"moe_token_dispatcher_type": ("flex",)},
      checked="TransformerConfig")  # fmt: skip
needs("MW811", "DeepEP is a backend of the flexible dispatcher",
      when={"moe_enable_deepep": ON}, need={"moe_token_dispatcher_type": ("flex",)},
      checked="TransformerConfig")  # fmt: skip


@rule("MW812", "the flexible dispatcher moves tokens between ranks", checked="nowhere: dies when it is built")
def flexible(e: Effective) -> Iterator[Violation]:
    if not e.num_experts or e.moe_token_dispatcher_type != "flex":
        return
    if e.layout.expert * e.layout.expert_tensor == 1:
        message = "moe_token_dispatcher_type = flex needs EP x ETP > 1"
        yield Violation(message, ("moe_token_dispatcher_type", EP),
                        choices("moe_token_dispatcher_type", ["alltoall"]))  # fmt: skip


@rule("MW813", "DeepEP does not pad to capacity", checked="TransformerConfig")
def padding(e: Effective) -> Iterator[Violation]:
    is_deepep = e.moe_enable_deepep or e.values.get("moe_flex_dispatcher_backend", "deepep") == "deepep"
    if e.moe_token_dispatcher_type == "flex" and e.moe_pad_expert_input_to_capacity and is_deepep:
        message = "moe_pad_expert_input_to_capacity does not work with the DeepEP dispatcher"
        yield Violation(message, ("moe_pad_expert_input_to_capacity", "moe_token_dispatcher_type"),
                        choices("moe_pad_expert_input_to_capacity", [False]))  # fmt: skip


@rule("MW814", "what overlaps the exchange of tokens", checked="TransformerConfig")
def overlap(e: Effective) -> Iterator[Violation]:
    key = "overlap_moe_expert_parallel_comm"
    if not e.values.get(key):
        return
    wrong = {
        EP: e.layout.expert < 2,
        "moe_token_dispatcher_type": e.moe_token_dispatcher_type not in ("alltoall", "flex"),
        "pipeline_model_parallel_size": e.layout.pipeline > 1 and e.layout.virtual < 2,
        "recompute_granularity": e.recompute_granularity == "full",
        "recompute_method": e.recompute_method is not None,
        "recompute_num_layers": e.recompute_num_layers is not None,
        "recompute_modules": e.core >= (0, 17) and "moe" in (e.recompute_modules or ()),
        "moe_layer_recompute": e.core >= (0, 17) and bool(e.moe_layer_recompute),
        "bf16": not (e.bf16 or e.fp16),
        "moe_shared_expert_overlap": bool(e.moe_shared_expert_overlap),
        "mtp_num_layers": e.mtp_num_layers not in ((None, 0, 1) if e.core >= (0, 19) else (None, 1)),
    }
    for dest in (name for name, is_wrong in wrong.items() if is_wrong):
        more = " without virtual stages" if dest == "pipeline_model_parallel_size" else ""
        yield Violation(f"{key} does not work with {dest} = {e.values.get(dest)}{more}", (dest, key),
                        choices(key, [False]))  # fmt: skip


needs("MW838", "prediction layers are for a pipeline where the exchange of tokens is overlapped",
      when={"overlap_moe_expert_parallel_comm": ON, "mtp_num_layers": (1,)}, need={PP: tuple(range(2, 129))},
      checked="TransformerConfig", spans=(nvidia("0.16", "0.18"), rocm("0.16", "0.18")))  # fmt: skip
needs("MW836", "the flexible dispatcher was not overlapped with shared experts",
      when={"moe_token_dispatcher_type": ("flex",), "moe_shared_expert_intermediate_size": SET},
      need={"moe_shared_expert_overlap": OFF}, checked="TransformerConfig",
      spans=(nvidia(until="0.18"), rocm(until="0.18")))  # fmt: skip
needs("MW837", "weight gradients of experts overlap one exchange of tokens",
      when={"overlap_dispatch_backward_with_experts_wgrad": ON},
      need={"overlap_moe_expert_parallel_comm": OFF, "delay_wgrad_compute": OFF}, checked="TransformerConfig",
      spans=(nvidia("0.18"), rocm("0.18")))  # fmt: skip
needs("MW839", "the flexible dispatcher has one backend",
      when={"moe_enable_deepep": ON}, need={"moe_flex_dispatcher_backend": ("deepep", "ncclep")},
      checked="TransformerConfig", spans=(nvidia("0.16"), rocm("0.16")))  # fmt: skip


needs("MW841", "one weight for all experts of a rank is kept in FP4 where it is multiplied in FP4",
      when={"moe_single_grouped_weight": ON, "fp4": ON}, need={"fp4_param_gather": ON},
      checked="TransformerConfig", spans=(nvidia("0.20"),))  # fmt: skip


@rule("MW840", "one weight for all experts of a rank is of some number formats", checked="TransformerConfig",
      spans=(nvidia("0.18"), rocm("0.18")))  # fmt: skip
def single_weight(e: Effective) -> Iterator[Violation]:
    if not e.moe_single_grouped_weight:
        return
    is_mxfp8, is_older = bool(e.fp8) and e.fp8_recipe == "mxfp8", e.core < (0, 19)
    is_wrong = (e.fp4 or not is_mxfp8) if is_older else (
        (e.fp8 and not is_mxfp8) or (e.fp4 and e.fp4_recipe != "nvfp4"))  # fmt: skip
    if is_wrong:
        legal = "fp8_recipe = mxfp8" if is_older else "fp8_recipe = mxfp8, fp4_recipe = nvfp4 and bf16"
        yield Violation(f"moe_single_grouped_weight works with {legal}", ("moe_single_grouped_weight", "fp8_recipe"),
                        choices("moe_single_grouped_weight", [False]))  # fmt: skip


needs("MW815", "weight gradients wait for the exchange of tokens",
      when={"delay_wgrad_compute": ON},
      need={"transformer_impl": ("transformer_engine",), "overlap_moe_expert_parallel_comm": ON},
      checked="validate_args, TransformerConfig")  # fmt: skip
SENT_IN_FP8 = {"MW833": "moe_dispatch_fwd_dtype", "MW834": "moe_combine_bwd_dtype"}
for number, dest in SENT_IN_FP8.items():
    needs(number, "tokens travel in fewer bits with NCCL's expert parallelism",
          when={dest: ("mxfp8",)}, need={"moe_flex_dispatcher_backend": ("ncclep",)},
          checked="TransformerConfig")  # fmt: skip
needs("MW829", "memory is early given back where the exchange of tokens is overlapped",
      when={"ep_overlap_early_attn_memory_release": ON}, need={"overlap_moe_expert_parallel_comm": ON},
      checked="TransformerConfig")  # fmt: skip
needs("MW830", "the flexible dispatcher needs real ranks",
      when={"fake_process_group": ON}, need={"moe_token_dispatcher_type": ("allgather", "alltoall")})  # fmt: skip


@rule("MW819", "a capacity for each rank is of some dispatchers", checked="TransformerConfig")
def rank_capacity(e: Effective) -> Iterator[Violation]:
    factor, backend = "moe_expert_rank_capacity_factor", e.moe_flex_dispatcher_backend
    if e.values.get(factor) is None:
        if e.moe_paged_stash:
            yield Violation(f"moe_paged_stash needs {factor}", ("moe_paged_stash", factor))
    elif backend not in ("hybridep", "ncclep"):
        message = f"{factor} does not work with moe_flex_dispatcher_backend = {backend}"
        yield Violation(message, (factor, "moe_flex_dispatcher_backend"),
                        choices("moe_flex_dispatcher_backend", ["hybridep", "ncclep"]))  # fmt: skip
    elif backend == "hybridep" and not e.use_transformer_engine_op_fuser:
        message = f"{factor} with hybridep needs use_transformer_engine_op_fuser"
        yield Violation(message, (factor, "use_transformer_engine_op_fuser"),
                        choices("use_transformer_engine_op_fuser", [True]))  # fmt: skip


@rule("MW831", "layers made for inference", checked="TransformerConfig", spans=(nvidia("0.16"),))
def inference(e: Effective) -> Iterator[Violation]:
    if e.transformer_impl != "inference_optimized":
        return
    wrong = {"normalization": e.normalization != "RMSNorm", "add_bias_linear": bool(e.add_bias_linear),
             "add_qkv_bias": bool(e.add_qkv_bias), "apply_layernorm_1p": bool(e.apply_layernorm_1p)}  # fmt: skip
    if e.num_experts and e.core >= (0, 17):
        wrong |= {"expert_tensor_parallel_size": e.layout.expert_tensor > 1,
                  "moe_expert_capacity_factor": e.moe_expert_capacity_factor is not None,
                  "moe_router_padding_for_quantization": bool(e.moe_router_padding_for_quantization),
                  "moe_router_dtype": e.moe_router_dtype != "fp32", "swiglu": bool(e.swiglu)}  # fmt: skip
    for dest in (name for name, is_wrong in wrong.items() if is_wrong):
        message = f"transformer_impl = inference_optimized does not work with {dest} = {word(e.values.get(dest))}"
        yield Violation(message, (dest, "transformer_impl"),
                        choices("transformer_impl", ["transformer_engine"]))  # fmt: skip
