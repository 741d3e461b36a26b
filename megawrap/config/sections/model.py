"""What is trained: the dimensions of the model."""

from __future__ import annotations

from dataclasses import dataclass

from megawrap.config.field import arg, option


@dataclass(kw_only=True, slots=True)
class Model:
    """The model: dimensions, normalisation, position embedding and, for mixture-of-experts models, the experts."""

    name: str | None = option()
    """What the plan and the run directory call the model."""
    parameters: int | None = option()
    """Published number of parameters; the plan computes the true one and says when they differ."""
    num_layers: int | None = arg("--num-layers")
    """Number of transformer layers."""
    hidden_size: int | None = arg("--hidden-size")
    """Width of the residual stream."""
    ffn_hidden_size: int | None = arg("--ffn-hidden-size")
    """Width of the feed-forward layer, of one branch when it is gated (SwiGLU). Megatron's default is 4 x hidden_size,
    with SwiGLU 8/3 x hidden_size rounded down to a multiple of 64."""
    num_attention_heads: int | None = arg("--num-attention-heads")
    """Number of query heads; tensor parallelism must divide it."""
    group_query_attention: bool | None = arg("--group-query-attention")
    """Several query heads share one key/value head. Follows from num_query_groups when not set."""
    num_query_groups: int | None = arg("--num-query-groups")
    """Number of key/value heads when group_query_attention is on."""
    kv_channels: int | None = arg("--kv-channels")
    """Dimension of one head; hidden_size / num_attention_heads when not set."""
    max_position_embeddings: int | None = arg("--max-position-embeddings")
    """Longest sequence the model is made for; train.seq_length may not exceed it."""
    position_embedding_type: str | None = arg("--position-embedding-type")
    """How positions enter: rope, learned_absolute, none, ... as the target release names them."""
    rotary_base: int | None = arg("--rotary-base")
    """Base of the rotary frequencies: 10000 for Llama 2, 500000 for Llama 3."""
    rotary_percent: float | None = arg("--rotary-percent")
    """Share of each head's dimensions that is rotated."""
    use_rope_scaling: bool | None = arg("--use-rope-scaling")
    """Llama 3.1's scaling of the rotary frequencies."""
    rope_scaling_factor: float | None = arg("--rope-scaling-factor")
    """Factor of Llama 3.1's scaling of the rotary frequencies."""
    normalization: str | None = arg("--normalization")
    """LayerNorm or RMSNorm."""
    norm_epsilon: float | None = arg("--norm-epsilon")
    """Epsilon of the normalisation."""
    swiglu: bool | None = arg("--swiglu")
    """Gated feed-forward layer with SiLU."""
    bias_linear: bool | None = arg("--bias-linear")
    """Biases in the linear layers; the Llama family has none."""
    add_qkv_bias: bool | None = arg("--add-qkv-bias")
    """Bias in the query/key/value projection alone (Qwen 2)."""
    qk_layernorm: bool | None = arg("--qk-layernorm")
    """Normalise queries and keys (Qwen 3)."""
    untie_embeddings_and_output_weights: bool | None = arg("--untie-embeddings-and-output-weights")
    """Separate weights for the token embedding and the output layer."""
    make_vocab_size_divisible_by: int | None = arg("--make-vocab-size-divisible-by")
    """The vocabulary is padded to a multiple of this times the tensor-parallel size."""
    vocab_size: int | None = option()
    """Size of the vocabulary before padding, for the parameter count and NullTokenizer; a real tokenizer brings its
    own."""
    init_method_std: float | None = arg("--init-method-std")
    """Standard deviation of the initial weights."""
    attention_dropout: float | None = arg("--attention-dropout")
    """Dropout on the attention probabilities. Megatron's default is 0.1, which no Llama uses."""
    hidden_dropout: float | None = arg("--hidden-dropout")
    """Dropout on the residual stream. Megatron's default is 0.1, which no Llama uses."""
    num_experts: int | None = arg("--num-experts")
    """Number of experts; not set for a dense model."""
    moe_router_topk: int | None = arg("--moe-router-topk")
    """Experts that each token visits."""
    moe_ffn_hidden_size: int | None = arg("--moe-ffn-hidden-size")
    """Width of one expert's feed-forward layer; ffn_hidden_size when not set."""
    moe_shared_expert_intermediate_size: int | None = arg("--moe-shared-expert-intermediate-size")
    """Total width of the shared experts."""
    moe_router_load_balancing_type: str | None = arg("--moe-router-load-balancing-type")
    """How the router is balanced: aux_loss, seq_aux_loss, sinkhorn, none."""
    moe_aux_loss_coeff: float | None = arg("--moe-aux-loss-coeff")
    """Weight of the balancing loss."""
    moe_token_dispatcher_type: str | None = arg("--moe-token-dispatcher-type")
    """How tokens travel to their experts: allgather, alltoall, flex."""
    moe_grouped_gemm: bool | None = arg("--moe-grouped-gemm")
    """All experts of a rank in one grouped GEMM (needs Transformer Engine)."""
