"""MW36x: recomputation, offloading, CUDA graphs. Sources: validate_args and TransformerConfig of Megatron-LM
core_v0.19.0."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, needs, nvidia, rocm, rule

MODULES = {**dict.fromkeys(("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe"), (0, 12)),
           "shared_experts": (0, 14), "gdn_norm_out": (0, 19)}  # fmt: skip
"""What can be recomputed, and since which version."""
OFFLOADED = ("core_attn", "attn_proj", "expert_fc1", "fused_group_mlp", "moe_act", "attn_norm", "mlp_norm",
             "qkv_linear")  # fmt: skip


@rule("MW305", "recomputing whole layers needs a method and a number of layers", checked="TransformerConfig")
def whole_layers(e: Effective) -> Iterator[Violation]:
    kind = e.recompute_granularity
    if kind == "full":
        for dest, value in (("recompute_method", "uniform"), ("recompute_num_layers", 1)):
            if e.values.get(dest) is None:
                message = f"recompute granularity full needs {dest}"
                yield Violation(message, (dest, "recompute_granularity"), choices(dest, [value]))
    if kind == "selective" and e.recompute_method:
        yield Violation("selective recomputation takes no method", ("recompute_method", "recompute_granularity"))
    if kind == "selective" and e.recompute_num_layers is not None:
        message = "selective recomputation takes no number of layers"
        yield Violation(message, ("recompute_num_layers", "recompute_granularity"))


@rule("MW360", "the modules to recompute exist", checked="TransformerConfig", spans=(nvidia("0.12"), rocm("0.15")))
def modules(e: Effective) -> Iterator[Violation]:
    named = e.recompute_modules or ()
    if e.recompute_granularity != "selective":
        return
    known = [name for name, since in MODULES.items() if e.core >= since]
    wrong = [name for name in named if name not in known]
    if wrong:
        message = f"recompute_modules has {', '.join(wrong)}; there are: {', '.join(known)}"
        yield Violation(message, ("recompute_modules",))
    pairs = (
        ("moe_act", e.moe_grouped_gemm, "moe_grouped_gemm"),
        ("mla_up_proj", e.multi_latent_attention, "multi_latent_attention"),
        ("gdn_norm_out", e.experimental_attention_variant == "gated_delta_net", "experimental_attention_variant"),
        ("shared_experts", not (e.moe_shared_expert_overlap and e.moe_shared_expert_intermediate_size),
         "moe_shared_expert_overlap"),
    )  # fmt: skip
    for name, is_fit, dest in pairs:
        if name in named and not is_fit:
            verb = "does not work with" if dest == "moe_shared_expert_overlap" else "needs"
            yield Violation(f"recomputing {name} {verb} {dest}", ("recompute_modules", dest))


@rule("MW361", "delayed FP8 scales see each value once", checked="TransformerConfig",
      spans=(nvidia("0.13"), rocm("0.15")))  # fmt: skip
def recompute_in_fp8(e: Effective) -> Iterator[Violation]:
    again = [name for name in ("moe_act", "layernorm") if name in (e.recompute_modules or ())]
    if e.fp8 and e.fp8_recipe == "delayed" and e.recompute_granularity == "selective" and again:
        message = f"recomputing {' and '.join(again)} does not work with fp8_recipe = delayed"
        yield Violation(message, ("recompute_modules", "fp8_recipe"), choices("fp8_recipe", ["tensorwise"]))


needs("MW362", "saved activations are distributed over TP when whole layers are recomputed",
      when={"distribute_saved_activations": ON},
      need={"recompute_granularity": ("full",), "recompute_method": ON, "sequence_parallel": OFF,
            "tensor_model_parallel_size": tuple(range(2, 129))})  # fmt: skip
needs("MW363", "a whole expert layer is recomputed by itself",
      when={"moe_layer_recompute": ON}, need={"recompute_granularity": ("selective", None)},
      checked="TransformerConfig")  # fmt: skip


@rule("MW364", "fewer layers are offloaded than there are", checked="TransformerConfig",
      spans=(nvidia("0.16"), rocm("0.16")))  # fmt: skip
def offloaded_layers(e: Effective) -> Iterator[Violation]:
    count, layers = e.cpu_offloading_num_layers or 0, e.num_layers
    if layers and count >= layers:
        message = f"cpu_offloading_num_layers = {count}, and there are {layers} layers"
        yield Violation(message, ("cpu_offloading_num_layers",), choices("cpu_offloading_num_layers", [layers - 1]))


@rule("MW365", "fine-grained offloading names modules that exist", checked="validate_args, TransformerConfig")
def offloaded_modules(e: Effective) -> Iterator[Violation]:
    if not e.fine_grained_activation_offloading:
        return
    named, key = e.offload_modules or (), "offload_modules"
    wrong = [name for name in named if name not in OFFLOADED]
    if not named or wrong:
        said = f"has {', '.join(wrong)}" if wrong else "is empty"
        yield Violation(f"offload_modules {said}; there are: {', '.join(OFFLOADED)}", (key,))
    if "attn_proj" in named and "core_attn" not in named:
        yield Violation("offloading attn_proj needs core_attn with it", (key,))
    if e.transformer_impl != "transformer_engine":
        message = f"fine-grained offloading needs Transformer Engine, and transformer_impl is {e.transformer_impl}"
        yield Violation(message, ("fine_grained_activation_offloading", "transformer_impl"))
    if e.environment.get("NVTE_CPU_OFFLOAD_V1") != "1":
        message = "fine-grained offloading needs NVTE_CPU_OFFLOAD_V1=1 with Transformer Engine 2.10 or newer"
        yield Violation(message, ("fine_grained_activation_offloading",))
    if e.cpu_offloading_num_layers:
        message = "fine-grained offloading does not work with cpu_offloading_num_layers"
        yield Violation(message, ("fine_grained_activation_offloading", "cpu_offloading_num_layers"))


needs("MW371", "CUDA graphs draw random numbers through Transformer Engine",
      when={"external_cuda_graph": ON}, need={"te_rng_tracker": ON}, spans=(nvidia("0.13", "0.14"),))  # fmt: skip
needs("MW366", "CUDA graphs capture layers that are not recomputed whole",
      when={"cuda_graph_impl": ("local", "transformer_engine")}, need={"recompute_granularity": ("selective", None),
                                                                        "cpu_offloading_num_layers": OFF},
      checked="TransformerConfig")  # fmt: skip
needs("MW367", "a graph of the whole iteration cannot look for NaN",
      when={"cuda_graph_impl": ("full_iteration",)},
      need={"check_for_nan_in_loss_and_grad": OFF, "cuda_graph_modules": OFF})  # fmt: skip


@rule("MW370", "CUDA graphs of inference go with those of training", checked="validate_args")
def inference_graphs(e: Effective) -> Iterator[Violation]:
    scope = e.inference_cuda_graph_scope
    legal = ("layer", "block") if e.cuda_graph_impl == "local" else ("none",)
    if scope is not None and scope not in legal:
        message = f"inference_cuda_graph_scope = {scope} with cuda_graph_impl = {e.cuda_graph_impl}"
        yield Violation(message, ("inference_cuda_graph_scope", "cuda_graph_impl"),
                        choices("inference_cuda_graph_scope", legal))  # fmt: skip


@rule("MW368", "CUDA graphs and expandable segments exclude each other", checked="validate_args",
      spans=(nvidia("0.14"), rocm("0.15")))  # fmt: skip
def segments(e: Effective) -> Iterator[Violation]:
    # From 0.16 on only Transformer Engine's graphs are refused, and not with NCCL_GRAPH_REGISTER=0.
    refused = ("local", "transformer_engine") if e.core < (0, 16) else ("transformer_engine",)
    is_safe = e.core >= (0, 16) and e.environment.get("NCCL_GRAPH_REGISTER") == "0"
    allocator = e.environment.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    if e.cuda_graph_impl in refused and not is_safe and "expandable_segments:True" in allocator:
        message = "CUDA graphs do not work with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        yield Violation(message, ("cuda_graph_impl",), choices("cuda_graph_impl", ["none"]))


@rule("MW369", "experts are padded for local CUDA graphs", checked="validate_args",
      spans=(nvidia("0.16", "0.18"), rocm("0.16", "0.18")))  # fmt: skip
def padded_experts(e: Effective) -> Iterator[Violation]:
    key = "moe_pad_experts_for_cuda_graph_inference"
    if e.cuda_graph_impl == "local" and e.layout.expert > 1 and not e.values.get(key):
        message = f"cuda_graph_impl = local with EP = {e.layout.expert} needs {key}"
        yield Violation(message, (key, "cuda_graph_impl"), choices(key, [True]))
