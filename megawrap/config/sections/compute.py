"""How the arithmetic is done: number formats, attention, fused kernels, GEMM tuning, recomputation."""

from __future__ import annotations

from dataclasses import dataclass

from megawrap.config.field import arg, option


@dataclass(kw_only=True, slots=True)
class Precision:
    """Number formats of weights, gradients and matrix products."""

    dtype: str = option("bf16", choices=("bf16", "fp16", "fp32"))
    """Format of weights and activations."""
    fp8_format: str | None = arg("--fp8-format")
    """FP8 number format: hybrid (e4m3 forward, e5m2 backward) or e4m3. Not set: no FP8."""
    fp8_recipe: str | None = arg("--fp8-recipe")
    """How FP8 scales are found: delayed, tensorwise, blockwise, mxfp8. Releases before 0.12 know delayed alone."""
    fp8_margin: int | None = arg("--fp8-margin")
    """Margin of delayed scaling."""
    fp8_amax_history_len: int | None = arg("--fp8-amax-history-len")
    """Steps of history that delayed scaling looks at."""
    fp8_amax_compute_algo: str | None = arg("--fp8-amax-compute-algo")
    """How delayed scaling reduces its history: most_recent or max."""
    fp8_param_gather: bool | None = arg("--fp8-param-gather")
    """Keep and gather the parameters in FP8."""
    keep_fp8_transpose_cache: bool | None = arg("--keep-fp8-transpose-cache")
    """megatron_fsdp only: keep the transposed FP8 weights in place of making them again."""
    moe_router_padding: bool | None = arg("--moe-router-padding-for-quantization")
    """Pad the tokens of each expert to the multiple of 16 or 32 that FP8 products need."""
    grad_reduce_in_bf16: bool | None = arg("--grad-reduce-in-bf16")
    """Reduce gradients in bf16 in place of fp32."""
    loss_scale: float | None = arg("--loss-scale")
    """Static loss scale for fp16; dynamic when not set."""


@dataclass(kw_only=True, slots=True)
class Attention:
    """Which attention kernel runs."""

    backend: str | None = option(choices=("auto", "flash", "fused", "unfused"))
    """auto lets Transformer Engine choose; flash; fused (CK on AMD, cuDNN on NVIDIA); unfused."""
    softmax_in_fp32: bool | None = arg("--attention-softmax-in-fp32")
    """Compute the softmax in fp32."""


@dataclass(kw_only=True, slots=True)
class Fusion:
    """Fused kernels and the layer implementation. Not set: Megatron's default."""

    transformer_impl: str | None = arg("--transformer-impl")
    """transformer_engine or local (plain PyTorch layers)."""
    masked_softmax: bool | None = arg("--masked-softmax-fusion")
    """Fused scale, mask and softmax."""
    bias_gelu: bool | None = arg("--bias-gelu-fusion")
    """Fused bias and GeLU."""
    bias_swiglu: bool | None = arg("--bias-swiglu-fusion")
    """Fused bias and SwiGLU."""
    bias_dropout: bool | None = arg("--bias-dropout-fusion")
    """Fused bias, dropout and residual addition."""
    rope: bool | None = arg("--rope-fusion")
    """Fused rotary embedding (needs Transformer Engine)."""
    gradient_accumulation: bool | None = arg("--gradient-accumulation-fusion")
    """Weight gradients accumulated inside the GEMM (needs Apex or Transformer Engine)."""
    persist_layer_norm: bool | None = arg("--persist-layer-norm")
    """Apex's persistent fused layer norm."""
    cross_entropy: bool | None = arg("--cross-entropy-loss-fusion")
    """Fused cross entropy."""
    cross_entropy_impl: str | None = arg("--cross-entropy-fusion-impl")
    """Whose: native, or te (Transformer Engine's; core 0.19 refuses it)."""
    use_cpu_initialization: bool | None = arg("--use-cpu-initialization")
    """Initialise the weights on the CPU: the same values for every tensor-parallel size."""


@dataclass(kw_only=True, slots=True)
class Gemm:
    """Tuning of matrix products on AMD GPUs."""

    mode: str = option(
        "default", choices=("default", "tune", "te_file", "override", "log", "tunableop", "tunableop_tune")
    )
    """default: the library's own choice. tune: Transformer Engine times hipBLASLt algorithms in the run itself, so the
    first iterations are slow. te_file: what an earlier tune found. override: solutions of hipBLASLt tuned offline. log:
    the shapes that offline tuning needs. tunableop and tunableop_tune: PyTorch's own products, tuned before or now."""
    file: str | None = option()
    """te_file, override, tunableop: the file to read. tune: where to keep what is found (not set: nowhere). log and
    tunableop_tune: where to write (not set: in the run directory). Written files get a number for each process (%i) or
    GPU (%d)."""
    run_count: int = option(10)
    """tune: timed runs of each algorithm."""
    algo_count: int = option(50)
    """tune: algorithms tried for each shape."""


@dataclass(kw_only=True, slots=True)
class Recompute:
    """Activations thrown away in the forward pass and computed again in the backward pass."""

    granularity: str | None = arg("--recompute-granularity")
    """full (whole layers) or selective (the modules named below). Not set: keep everything."""
    method: str | None = arg("--recompute-method")
    """full only: uniform or block."""
    num_layers: int | None = arg("--recompute-num-layers")
    """full only: layers per recomputed chunk (uniform), or layers recomputed per stage (block)."""
    modules: list[str] | None = arg("--recompute-modules")
    """selective only: core_attn, mlp, moe, layernorm, ... as the target release names them. Releases before 0.12 know
    core_attn, and moe beside it."""
