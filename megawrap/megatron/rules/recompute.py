"""MW305, MW360–MW365, MW410–MW412: recomputation and offloading. Sources: validate_args and TransformerConfig of
Megatron-LM core_v0.9.0 to core_v0.19.0."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, needs, nvidia, rocm, rule

MODULES = {**dict.fromkeys(("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe"), (0, 12)),
           "shared_experts": (0, 14), "gdn_norm_out": (0, 19)}  # fmt: skip
"""What can be recomputed, and since which version."""
MODULES_KEY = "recompute_modules"
OFFLOADED = ("core_attn", "attn_proj", "expert_fc1", "moe_act", "attn_norm", "mlp_norm", "qkv_linear")
FUSED_GROUP = "fused_group_mlp"
"""It can be offloaded from 0.19 on."""


def recomputed(e: Effective) -> frozenset[str]:
    """The modules that are recomputed, everything of a layer being "full"."""
    by_flag = bool(e.moe_layer_recompute) and e.core >= (0, 12)
    if e.recompute_granularity not in ("full", "selective") and not by_flag:
        return frozenset()
    if e.recompute_granularity == "full":
        return frozenset({"full"})
    return frozenset(("core_attn",) if e.recompute_modules is None else e.recompute_modules) | (
        {"moe"} if by_flag else set()
    )


def is_offloading(e: Effective) -> bool:
    """Whether layers are offloaded to the CPU: a switch of its own before 0.16, a number of layers since."""
    return (e.cpu_offloading_num_layers or 0) > 0 if e.core >= (0, 16) else bool(e.cpu_offloading)


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


@rule("MW364", "fewer layers are offloaded than there are", checked="TransformerConfig")
def offloaded_layers(e: Effective) -> Iterator[Violation]:
    count, layers = e.cpu_offloading_num_layers or 0, e.num_layers
    if layers and is_offloading(e) and not 0 <= count < layers:
        message = f"cpu_offloading_num_layers = {count}, and there are {layers} layers"
        yield Violation(message, ("cpu_offloading_num_layers",), choices("cpu_offloading_num_layers", [layers - 1]))


@rule("MW365", "fine-grained offloading names modules that exist", checked="validate_args, TransformerConfig")
def offloaded_modules(e: Effective) -> Iterator[Violation]:
    if not e.fine_grained_activation_offloading:
        return
    named, key = e.offload_modules or (), "offload_modules"
    known = (*OFFLOADED, FUSED_GROUP) if e.core >= (0, 19) else OFFLOADED
    wrong = [name for name in named if name not in known]
    if not named or wrong:
        said = f"has {', '.join(wrong)}" if wrong else "is empty"
        yield Violation(f"offload_modules {said}; there are: {', '.join(known)}", (key,))
    if "attn_proj" in named and "core_attn" not in named:
        yield Violation("offloading attn_proj needs core_attn with it", (key,))
    if e.transformer_impl != "transformer_engine":
        message = f"fine-grained offloading needs Transformer Engine, and transformer_impl is {e.transformer_impl}"
        yield Violation(message, ("fine_grained_activation_offloading", "transformer_impl"))
    if e.environment.get("NVTE_CPU_OFFLOAD_V1") != "1":
        message = "fine-grained offloading needs NVTE_CPU_OFFLOAD_V1=1 with Transformer Engine 2.10 or newer"
        yield Violation(message, ("fine_grained_activation_offloading",))
    if is_offloading(e):
        message = "fine-grained offloading does not work with cpu_offloading_num_layers"
        yield Violation(message, ("fine_grained_activation_offloading", "cpu_offloading_num_layers"))


PARTS_OF_EXPERTS = ("moe_act", "expert_fc1", FUSED_GROUP)


@rule("MW410", "what is offloaded of experts is not recomputed too, or named twice", checked="TransformerConfig",
      spans=(nvidia("0.19"), rocm("0.19")))  # fmt: skip
def offloaded_experts(e: Effective) -> Iterator[Violation]:
    named, key = set(e.offload_modules or ()), "offload_modules"
    if not e.fine_grained_activation_offloading:
        return
    parts = [name for name in PARTS_OF_EXPERTS if name in named]
    if parts and "moe" in recomputed(e):
        yield Violation(f"offloading {' and '.join(parts)} does not work with recomputing moe", (key, MODULES_KEY))
    if FUSED_GROUP in named and len(parts) > 1:
        yield Violation(f"{FUSED_GROUP} is offloaded whole: leave out {parts[0]}", (key,))
    if FUSED_GROUP in named and not e.use_transformer_engine_op_fuser:
        message = f"offloading {FUSED_GROUP} needs use_transformer_engine_op_fuser"
        yield Violation(message, (key, "use_transformer_engine_op_fuser"),
                        choices("use_transformer_engine_op_fuser", [True]))  # fmt: skip


@rule("MW411", "sizes of what is offloaded are not negative", checked="TransformerConfig",
      spans=(nvidia("0.19"), rocm("0.19")))  # fmt: skip
def offloaded_sizes(e: Effective) -> Iterator[Violation]:
    if not e.fine_grained_activation_offloading:
        return
    for dest in ("min_offloaded_tensor_size", "delta_offload_bytes_across_pp_ranks"):
        if (e.values.get(dest) or 0) < 0:
            yield Violation(f"{dest} = {e.values[dest]} is negative", (dest,), choices(dest, [0]))
    fraction = e.activation_offload_fraction
    if fraction is not None and not 0 <= fraction <= 1:
        message = f"activation_offload_fraction = {fraction} is not from 0 to 1"
        yield Violation(message, ("activation_offload_fraction",), choices("activation_offload_fraction", [1.0]))


@rule("MW412", "what is stashed is not offloaded too", checked="TransformerConfig",
      spans=(nvidia("0.18"), rocm("0.18")))  # fmt: skip
def stashed(e: Effective) -> Iterator[Violation]:
    if not e.moe_paged_stash:
        return
    twice = [name for name in PARTS_OF_EXPERTS if name in (e.offload_modules or ())]
    if twice:
        message = f"moe_paged_stash keeps {' and '.join(twice)}, which offload_modules has too"
        yield Violation(message, ("moe_paged_stash", "offload_modules"))
    if is_offloading(e):
        message = "moe_paged_stash does not work with cpu_offloading_num_layers"
        yield Violation(message, ("moe_paged_stash", "cpu_offloading_num_layers"))
