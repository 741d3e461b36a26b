"""How many parameters a model has, from Megatron arguments alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def total_parameters(values: Mapping[str, Any], vocab_size: int | None) -> int | None:
    """Parameters of the whole model with an unpadded vocabulary of ``vocab_size``; ``values`` are parsed Megatron
    arguments (``dest`` → value). ``None`` when dimensions are missing or the architecture is not counted here (latent
    attention, multi-token prediction, hybrid and encoder-decoder models, experts in some layers only).

    Counts the tensors of GPTModel in Megatron-LM core_v0.19.0 (megatron/core/models/gpt, megatron/core/transformer).
    """
    hidden, layers, heads = (values.get(name) for name in ("hidden_size", "num_layers", "num_attention_heads"))
    if not (vocab_size and hidden and layers and heads) or _is_other_architecture(values):
        return None
    tables = 2 if values.get("untie_embeddings_and_output_weights") else 1
    positions = values["max_position_embeddings"] if values.get("position_embedding_type") == "learned_absolute" else 0
    layer = _attention(values, hidden, heads) + _feed_forward(values, hidden) + 2 * _norm(values, hidden)
    return int((tables * vocab_size + positions) * hidden + layers * layer + _norm(values, hidden))


def _is_other_architecture(values: Mapping[str, Any]) -> bool:
    names = ("multi_latent_attention", "mtp_num_layers", "hybrid_layer_pattern", "hybrid_override_pattern")
    return any(values.get(name) for name in names) or values.get("moe_layer_freq", 1) != 1


def _attention(values: Mapping[str, Any], hidden: int, heads: int) -> int:
    head = values.get("kv_channels") or hidden // heads
    groups = values["num_query_groups"] if values.get("group_query_attention") else heads
    qkv = (heads + 2 * groups) * head
    linear_bias = bool(values.get("add_bias_linear"))
    biases = qkv * (linear_bias or bool(values.get("add_qkv_bias"))) + hidden * linear_bias
    query_key_norms = 2 * _norm(values, head) if values.get("qk_layernorm") else 0
    return hidden * qkv + heads * head * hidden + biases + query_key_norms


def _feed_forward(values: Mapping[str, Any], hidden: int) -> int:
    gated = bool(values.get("swiglu"))
    inner = feed_forward_size(values)
    experts = values.get("num_experts")
    if not experts:
        return _branch(hidden, inner, gated, bool(values.get("add_bias_linear")))
    each = _branch(hidden, values.get("moe_ffn_hidden_size") or inner, gated, bool(values.get("add_bias_linear")))
    shared = _branch(hidden, values.get("moe_shared_expert_intermediate_size") or 0, gated, False)
    return int(experts * (each + hidden) + shared)


def feed_forward_size(values: Mapping[str, Any]) -> int:
    """``ffn_hidden_size``, or what Megatron takes when it is not given: 4h, with SwiGLU 8h/3 in steps of 64."""
    given, hidden = values.get("ffn_hidden_size"), values["hidden_size"]
    if given:
        return int(given)
    return int(4 * hidden * 2 / 3 / 64) * 64 if values.get("swiglu") else 4 * hidden


def _branch(hidden: int, inner: int, gated: bool, bias: bool) -> int:
    if not inner:
        return 0
    up = (2 if gated else 1) * inner
    return hidden * up + inner * hidden + (up + hidden) * bias


def _norm(values: Mapping[str, Any], width: int) -> int:
    return width if values.get("normalization") == "RMSNorm" else 2 * width
