"""MW38x: activations, fused kernels, determinism. Sources: validate_args, TransformerConfig and language_module of
Megatron-LM core_v0.19.0."""

from __future__ import annotations

import math
from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, needs, nvidia, rocm, rule

NCCL_ALGORITHMS = ("Ring", "CollnetDirect", "CollnetChain", "^NVLS")
DETERMINISTIC = {"NVTE_ALLOW_NONDETERMINISTIC_ALGO": ("0",), "CUBLAS_WORKSPACE_CONFIG": (":4096:8", ":16:8")}


needs("MW380", "one activation",
      when={"swiglu": ON}, need={"squared_relu": OFF, "quick_geglu": OFF},
      checked="TransformerConfig")  # fmt: skip
needs("MW381", "the fused norm of the residual stream is RMSNorm",
      when={"fused_residual_rmsnorm": ON}, need={"normalization": ("RMSNorm",)},
      checked="TransformerConfig")  # fmt: skip
needs("MW382", "Transformer Engine's activation comes without a fused bias",
      when={"use_te_activation_func": ON, "swiglu": ON}, need={"bias_swiglu_fusion": OFF},
      checked="TransformerConfig")  # fmt: skip
needs("MW383", "Transformer Engine's activation comes without a fused bias",
      when={"use_te_activation_func": ON, "swiglu": OFF}, need={"bias_gelu_fusion": OFF},
      checked="TransformerConfig")  # fmt: skip
needs("MW389", "Transformer Engine has GeLU, SiLU and ReLU",
      when={"use_te_activation_func": ON}, need={"squared_relu": OFF, "quick_geglu": OFF},
      checked="TransformerConfig")  # fmt: skip


@rule("MW384", "cross entropy is fused by Megatron's own kernel", checked="validate_args", spans=(nvidia("0.18"),))
def cross_entropy(e: Effective) -> Iterator[Violation]:
    if e.cross_entropy_loss_fusion and e.cross_entropy_fusion_impl not in ("native", "linear"):
        message = (
            f"cross_entropy_loss_fusion does not work with cross_entropy_fusion_impl = {e.cross_entropy_fusion_impl}"
        )
        yield Violation(message, ("cross_entropy_fusion_impl", "cross_entropy_loss_fusion"),
                        choices("cross_entropy_fusion_impl", ["native"]))  # fmt: skip


UNKNOWN_TO_THE_MODEL = ("init_method_xavier_uniform", "disable_te_fused_rope")


@rule("MW390", "arguments that the model's configuration does not know are not used", checked="TransformerConfig")
def unknown_to_the_model(e: Effective) -> Iterator[Violation]:
    for dest in UNKNOWN_TO_THE_MODEL:
        if e.values.get(dest):
            message = f"{dest} dies in every release that has it: the model's configuration does not know it"
            yield Violation(message, (dest,), choices(dest, [False]))


@rule("MW391", "SwiGLU is clamped in experts only", checked="TransformerConfig", spans=(nvidia("0.20"),))
def clamp(e: Effective) -> Iterator[Violation]:
    limit, key = e.activation_func_clamp_value, "activation_func_clamp_value"
    if limit is None or not e.swiglu:
        return
    if not (math.isfinite(limit) and limit > 0):
        yield Violation(f"{key} = {limit} is not above 0", (key,))
    if not e.num_experts:
        yield Violation(f"{key} with swiglu is for models with experts", (key, "num_experts"))
    for dest in ("glu_linear_offset", "use_te_activation_func"):
        if e.values.get(dest):
            yield Violation(f"{key} with swiglu does not work with {dest}", (key, dest))


@rule("MW385", "fused activations are GeLU and SiLU", checked="TransformerConfig")
def fused(e: Effective) -> Iterator[Violation]:
    if e.squared_relu and not e.swiglu and e.bias_gelu_fusion:
        message = "squared_relu with bias_gelu_fusion: only GeLU and SiLU are fused"
        yield Violation(message, ("squared_relu", "bias_gelu_fusion"), choices("bias_gelu_fusion", [False]))
    if e.glu_linear_offset and not e.quick_geglu and (e.bias_swiglu_fusion if e.swiglu else e.bias_gelu_fusion):
        dest = "bias_swiglu_fusion" if e.swiglu else "bias_gelu_fusion"
        message = f"glu_linear_offset = {e.glu_linear_offset} with {dest}: only quick_geglu has an offset"
        yield Violation(message, ("glu_linear_offset", dest), choices(dest, [False]))


@rule("MW386", "a run that repeats exactly", checked="validate_args")
def deterministic(e: Effective) -> Iterator[Violation]:
    if not e.deterministic_mode:
        return
    if e.cross_entropy_loss_fusion:
        message = "deterministic_mode does not work with cross_entropy_loss_fusion"
        yield Violation(message, ("cross_entropy_loss_fusion", "deterministic_mode"),
                        choices("cross_entropy_loss_fusion", [False]))  # fmt: skip
    algorithms = e.environment.get("NCCL_ALGO")
    # From 0.19 on Megatron sets what is unset, takes a list of algorithms, and no longer trusts Tree.
    is_older = e.core < (0, 19)
    known = ("Tree", *NCCL_ALGORITHMS) if is_older else NCCL_ALGORITHMS
    words = [algorithms] if is_older else [word.strip() for word in (algorithms or "").split(",") if word.strip()]
    if (algorithms is not None or is_older) and not (words and set(words) <= set(known)):
        message = f"NCCL_ALGO = {algorithms or 'unset'} with deterministic_mode: it must be of {', '.join(known)}"
        yield Violation(message, ("env.NCCL_ALGO", "deterministic_mode"), choices("env.NCCL_ALGO", ["Ring"]))
    for name, legal in DETERMINISTIC.items():
        value = e.environment.get(name)
        if value is not None and value not in legal and not is_older:
            message = f"{name} = {value} with deterministic_mode: it must be {' or '.join(legal)}"
            yield Violation(message, (f"env.{name}", "deterministic_mode"), choices(f"env.{name}", legal))


@rule("MW387", "the attention backend and its variables agree", checked="nowhere: dies when the model is built",
      spans=(nvidia("0.10"), rocm("0.10")))  # fmt: skip
def attention_variables(e: Effective) -> Iterator[Violation]:
    wanted = BACKENDS.get(str(e.attention_backend))
    if wanted is None:
        return
    for name, value in zip(("NVTE_FLASH_ATTN", "NVTE_FUSED_ATTN", "NVTE_UNFUSED_ATTN"), wanted, strict=True):
        actual = e.environment.get(name)
        if actual is not None and actual != value:
            message = f"{name} = {actual}, and attention_backend = {e.attention_backend} wants {value} or unset"
            yield Violation(message, (f"env.{name}", "attention_backend"), choices(f"env.{name}", [value]))


BACKENDS = {"flash": "100", "fused": "010", "unfused": "001", "local": "000", "auto": "111"}
"""The backend → the only values that Megatron takes of NVTE_FLASH_ATTN, NVTE_FUSED_ATTN and NVTE_UNFUSED_ATTN."""


@rule("MW388", "scaling by layer is said to Transformer Engine too", checked="nowhere: dies when the layers are built")
def layer_scaling(e: Effective) -> Iterator[Violation]:
    variable = e.environment.get("NVTE_APPLY_QK_LAYER_SCALING", "0") or "0"
    if e.transformer_impl == "local":
        return
    if bool(int(variable) if variable.isdigit() else 0) != bool(e.apply_query_key_layer_scaling):
        message = (
            f"NVTE_APPLY_QK_LAYER_SCALING = {variable}, and apply_query_key_layer_scaling = "
            f"{str(bool(e.apply_query_key_layer_scaling)).lower()}: Transformer Engine wants them to agree"
        )
        yield Violation(message, ("apply_query_key_layer_scaling",))
