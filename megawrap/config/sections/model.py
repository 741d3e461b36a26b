"""What is trained: the dimensions of the model."""

from __future__ import annotations

from dataclasses import dataclass

from megawrap.config.field import arg, option


@dataclass(kw_only=True, slots=True)
class Model:
    """The model: dimensions, normalisation, position embedding and, for mixture-of-experts models, the experts."""

    name: str | None = option()
    """What the plan and the run directory call the model."""
    tokenizer: str | None = option()
    """The tokenizer group made for this model: tokenizer=NAME."""
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
    """Longest sequence the model is made for; train.seq_length may not exceed it. With latent attention, releases
    before 0.14 also take it for YaRN's original length."""
    position_embedding_type: str | None = arg("--position-embedding-type")
    """How positions enter: rope, learned_absolute, none, ... as the target release names them."""
    rotary_base: int | None = arg("--rotary-base")
    """Base of the rotary frequencies: 10000 for Llama 2, 500000 for Llama 3."""
    rotary_percent: float | None = arg("--rotary-percent")
    """Share of each head's dimensions that is rotated."""
    use_rope_scaling: bool | None = arg("--use-rope-scaling")
    """Llama 3.1's scaling of the rotary frequencies, from an original length of 8192, which Megatron fixes."""
    rope_scaling_factor: float | None = arg("--rope-scaling-factor")
    """Factor of Llama 3.1's scaling of the rotary frequencies: Megatron's default is 8, the factor of Llama 3.1."""
    rope_type: str | None = arg("--rope-type")
    """Latent attention only: yarn (Megatron's default there) or rope."""
    rotary_scaling_factor: float | None = arg("--rotary-scaling-factor")
    """Latent attention only: how far YaRN stretches the positions. Megatron's default is 1, the published DeepSeek
    models have 40."""
    mscale: float | None = arg("--mscale")
    """Latent attention only: YaRN's scale of rotated dimensions."""
    mscale_all_dim: float | None = arg("--mscale-all-dim")
    """Latent attention only: YaRN's scale of all dimensions. Before 0.14 mscale scaled the softmax, since then this."""
    rope_fusion: bool | None = arg("--rope-fusion")
    """Rotation in one kernel. Releases before 0.13 refuse it with latent attention."""
    window_size: str | None = arg("--window-size")
    """Sliding-window attention: tokens to the left and right that a token sees besides itself, (4095,0) for Mistral's
    window of 4096 (needs Transformer Engine)."""
    window_attn_skip_freq: str | None = arg("--window-attn-skip-freq")
    """Which layers attend to everything in spite of window_size: N for every N-th, or a pattern such as ([1]*3+[0])*8,
    0 for those."""
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
    """Normalise queries and keys (Qwen 3); with latent attention, their compressed form (DeepSeek)."""
    multi_latent_attention: bool | None = arg("--multi-latent-attention")
    """Keys and values by way of a narrow latent vector (DeepSeek)."""
    q_lora_rank: int | None = arg("--q-lora-rank")
    """Latent attention: width of the compressed queries; queries are not compressed when not set."""
    kv_lora_rank: int | None = arg("--kv-lora-rank")
    """Latent attention: width of the compressed keys and values. Megatron's default is 32, DeepSeek's is 512."""
    qk_head_dim: int | None = arg("--qk-head-dim")
    """Latent attention: dimensions of a query's or key's head that are not rotated."""
    qk_pos_emb_head_dim: int | None = arg("--qk-pos-emb-head-dim")
    """Latent attention: dimensions of a query's or key's head that are rotated."""
    v_head_dim: int | None = arg("--v-head-dim")
    """Latent attention: dimensions of a value's head."""
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
    moe_layer_freq: str | None = arg("--moe-layer-freq")
    """Which layers have experts: N for every N-th, or a pattern such as ([0]*3+[1]*58), 0 for a dense layer."""
    moe_ffn_hidden_size: int | None = arg("--moe-ffn-hidden-size")
    """Width of one expert's feed-forward layer; ffn_hidden_size when not set."""
    moe_shared_expert_intermediate_size: int | None = arg("--moe-shared-expert-intermediate-size")
    """Total width of the shared experts."""
    moe_shared_expert_overlap: bool | None = arg("--moe-shared-expert-overlap")
    """Compute the shared experts while tokens travel to the others."""
    moe_router_topk: int | None = arg("--moe-router-topk")
    """Experts that each token visits."""
    moe_router_score_function: str | None = arg("--moe-router-score-function")
    """How the router's outputs become scores: softmax or sigmoid."""
    moe_router_pre_softmax: bool | None = arg("--moe-router-pre-softmax")
    """Softmax over all experts before the best are taken, so that their weights do not add up to 1 (DeepSeek V2);
    Megatron's default is after (Mixtral, Qwen 3)."""
    moe_router_num_groups: int | None = arg("--moe-router-num-groups")
    """Groups that the experts are divided into for group-limited routing."""
    moe_router_group_topk: int | None = arg("--moe-router-group-topk")
    """Groups that a token's experts may come from."""
    moe_router_topk_scaling_factor: float | None = arg("--moe-router-topk-scaling-factor")
    """Factor on the weights of the experts that a token visits."""
    moe_router_enable_expert_bias: bool | None = arg("--moe-router-enable-expert-bias")
    """Balance by a bias on each expert's score that is moved from step to step, not trained (DeepSeek V3)."""
    moe_router_bias_update_rate: float | None = arg("--moe-router-bias-update-rate")
    """How far that bias moves in a step."""
    moe_router_dtype: str | None = arg("--moe-router-dtype")
    """fp32 or fp64: precision of routing and of combining; that of the model when not set."""
    moe_router_load_balancing_type: str | None = arg("--moe-router-load-balancing-type")
    """How the router is balanced: aux_loss, seq_aux_loss, sinkhorn, none."""
    moe_aux_loss_coeff: float | None = arg("--moe-aux-loss-coeff")
    """Weight of the balancing loss."""
    moe_token_dispatcher_type: str | None = arg("--moe-token-dispatcher-type")
    """How tokens travel to their experts: allgather, alltoall, flex."""
    moe_grouped_gemm: bool | None = arg("--moe-grouped-gemm")
    """All experts of a rank in one grouped GEMM (needs Transformer Engine)."""
    mtp_num_layers: int | None = arg("--mtp-num-layers")
    """Multi-token prediction: further tokens that are predicted at each position, each with a layer of its own."""
    mtp_loss_scaling_factor: float | None = arg("--mtp-loss-scaling-factor")
    """Weight of the loss on those further tokens."""
