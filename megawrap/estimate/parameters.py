"""How many parameters a model has, from Megatron arguments alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from megawrap.estimate import layers
from megawrap.estimate.layers import feed_forward_size
from megawrap.estimate.pattern import expert_layers

__all__ = ["active_parameters", "feed_forward_size", "total_parameters"]

_DIMENSIONS = ("hidden_size", "num_layers", "num_attention_heads")
# Arguments that put other tensors into the model than are counted here.
_ELSEWHERE = (
    "hybrid_layer_pattern",
    "hybrid_override_pattern",
    "is_hybrid_model",
    "experimental_attention_variant",
    "heterogeneous_layers_config_path",
    "heterogeneous_layers_config_encoded_json",
    "retro_add_retriever",
    "enable_shared_expert",
    "moe_latent_size",
    "enable_mhc_connections",
    "embed_layernorm",
    "mtp_hsm",
    "spec",
)


def total_parameters(values: Mapping[str, Any], vocab_size: int | None) -> int | None:
    """Parameters of the whole model with an unpadded vocabulary of ``vocab_size``; ``values`` are parsed Megatron
    arguments (``dest`` → value). ``None`` when dimensions are missing or contradict each other, or for an architecture
    that is not counted here (hybrid models, linear and sparse attention, latent experts, hyper-connections).

    Counts the tensors of GPTModel in Megatron-LM core_v0.19.0 (megatron/core/models/gpt, megatron/core/transformer).
    """
    pattern = _pattern(values)
    positions = values.get("max_position_embeddings") if _has_positions(values) else 0
    if pattern is None or not vocab_size or positions is None:
        return None
    hidden = int(values["hidden_size"])
    tables = 2 if values.get("untie_embeddings_and_output_weights") else 1
    blocks = sum(count * _layer(values, has_experts) for has_experts, count in Counter(pattern).items())
    ahead = _depths(values) * (_layer(values, pattern[-1]) + 2 * hidden * hidden + 3 * layers.norm(values))
    return int((tables * vocab_size + positions) * hidden + blocks + layers.norm(values) + ahead)


def active_parameters(values: Mapping[str, Any], vocab_size: int | None) -> int | None:
    """Parameters that one token meets: all but the experts it is not sent to. The embedding counts whole, as in the
    numbers that models are published with. ``None`` where ``total_parameters`` is."""
    total, pattern = total_parameters(values, vocab_size), _pattern(values)
    if total is None or pattern is None or not values.get("num_experts"):
        return total
    idle = max(int(values["num_experts"]) - int(values.get("moe_router_topk") or 0), 0) * layers.expert(values)
    return total - idle * (sum(pattern) + _depths(values) * pattern[-1])


def _pattern(values: Mapping[str, Any]) -> list[bool] | None:
    """For each layer whether it has experts; ``None`` when the model is not counted."""
    if not all((values.get(name) or 0) > 0 for name in _DIMENSIONS) or any(values.get(name) for name in _ELSEWHERE):
        return None
    if not values.get("num_experts"):
        return [False] * int(values["num_layers"])
    try:
        return expert_layers(values.get("moe_layer_freq"), int(values["num_layers"]))
    except ValueError:
        return None


def _has_positions(values: Mapping[str, Any]) -> bool:
    """Whether positions are learned, in a table of their own."""
    return values.get("position_embedding_type") == "learned_absolute"


def _depths(values: Mapping[str, Any]) -> int:
    """Layers of multi-token prediction: each repeats the last layer behind two norms and a projection of twice the
    width, before one more norm. The embedding and the output layer are the model's own."""
    depths = int(values.get("mtp_num_layers") or 0)
    return min(depths, 1) if values.get("mtp_use_repeated_layer") else depths


def _layer(values: Mapping[str, Any], has_experts: bool) -> int:
    inner = layers.dense(values)
    if has_experts:
        inner = int(values["num_experts"]) * layers.expert(values) + layers.beside_experts(values)
    return layers.attention(values) + inner + 2 * layers.norm(values)
