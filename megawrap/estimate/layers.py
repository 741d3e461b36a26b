"""How many parameters the parts of a layer have, as GPTModel builds them.

``values`` are parsed Megatron arguments (``dest`` → value). Counts are of the whole model: tensor and expert
parallelism divide them over ranks.
Source: Megatron-LM core_v0.19.0 megatron/core/transformer and megatron/core/models/gpt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def attention(values: Mapping[str, Any]) -> int:
    """Query, key, value and output projections, their biases and norms."""
    per_head = int(values["num_attention_heads"]) if values.get("softmax_type") == "learnable" else 0
    return per_head + (_latent(values) if values.get("multi_latent_attention") else _grouped(values))


def dense(values: Mapping[str, Any]) -> int:
    """The feed-forward layer of a layer without experts."""
    return _branch(values, feed_forward_size(values), bool(values.get("add_bias_linear")))


def expert(values: Mapping[str, Any]) -> int:
    """One routed expert."""
    inner = values.get("moe_ffn_hidden_size") or feed_forward_size(values)
    return _branch(values, int(inner), bool(values.get("add_bias_linear")))


def beside_experts(values: Mapping[str, Any]) -> int:
    """What a layer with experts has besides them: the router and the shared experts. The router's balancing bias
    (``moe_router_enable_expert_bias``) is a buffer, not a parameter."""
    hidden, shared = int(values["hidden_size"]), int(values.get("moe_shared_expert_intermediate_size") or 0)
    router = int(values["num_experts"]) * (hidden + bool(values.get("add_bias_linear")))
    gate = hidden if shared and values.get("moe_shared_expert_gate") else 0
    return router + _branch(values, shared, False) + gate


def norm(values: Mapping[str, Any], width: int | None = None) -> int:
    """A normalisation of ``width`` elements, ``hidden_size`` when not given."""
    width = int(values["hidden_size"] if width is None else width)
    return width if values.get("normalization") == "RMSNorm" else 2 * width


def feed_forward_size(values: Mapping[str, Any]) -> int:
    """``ffn_hidden_size``, or what Megatron takes when it is not given: 4h, with SwiGLU 8h/3 in steps of 64."""
    given, hidden = values.get("ffn_hidden_size"), values["hidden_size"]
    if given:
        return int(given)
    return int(4 * hidden * 2 / 3 / 64) * 64 if values.get("swiglu") else 4 * hidden


def _grouped(values: Mapping[str, Any]) -> int:
    hidden, heads = int(values["hidden_size"]), int(values["num_attention_heads"])
    head = int(values.get("kv_channels") or hidden // heads)
    groups = int(values["num_query_groups"]) if values.get("group_query_attention") else heads
    gated = bool(values.get("attention_output_gate"))
    qkv = (heads * (2 if gated else 1) + 2 * groups) * head
    linear_bias = bool(values.get("add_bias_linear"))
    biases = qkv * (linear_bias or bool(values.get("add_qkv_bias"))) + hidden * linear_bias
    has_norms = values.get("qk_layernorm") and not values.get("qk_l2_norm")
    return hidden * qkv + heads * head * hidden + biases + (2 * norm(values, head) if has_norms else 0)


def _latent(values: Mapping[str, Any]) -> int:
    """Multi-latent attention: queries by way of ``q_lora_rank`` when there is one, keys and values by way of
    ``kv_lora_rank``; the rotated part of the keys is shared by all heads."""
    hidden, heads = int(values["hidden_size"]), int(values["num_attention_heads"])
    plain, rotated, value = (int(values[name]) for name in ("qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"))
    query_rank, rank = values.get("q_lora_rank"), int(values["kv_lora_rank"])
    queries = heads * (plain + rotated)
    query = hidden * queries if query_rank is None else query_rank * (hidden + queries)
    key_value = hidden * (rank + rotated) + rank * heads * (plain + value)
    norms = norm(values, rank) + norm(values, query_rank or 0) if values.get("qk_layernorm") else 0
    return int(query + key_value + norms + (heads * value + bool(values.get("add_bias_linear"))) * hidden)


def _branch(values: Mapping[str, Any], inner: int, bias: bool) -> int:
    if not inner:
        return 0
    hidden = int(values["hidden_size"])
    up = (2 if values.get("swiglu") or values.get("quick_geglu") else 1) * inner
    return hidden * up + inner * hidden + (up + hidden) * bias
