"""MW30x: sequence, positions, attention. Sources: validate_args and TransformerConfig of Megatron-LM core_v0.19.0, and
older ones where a rule says so."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.estimate.pattern import read_pattern
from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.registry import (
    OFF,
    ON,
    Violation,
    choices,
    divisors,
    multiples,
    needs,
    nvidia,
    rocm,
    rule,
)


@rule("MW301", "positions reach as far as the sequence", checked="validate_args")
def positions(e: Effective) -> Iterator[Violation]:
    for dest in ("seq_length", "decoder_seq_length"):
        length, reach = e.values.get(dest), e.max_position_embeddings
        if length and reach and length > reach:
            yield Violation(
                f"sequences of {length} tokens, but positions for {reach}",
                (dest, "max_position_embeddings"),
                choices(dest, [reach]),
            )


@rule("MW302", "with context parallelism the sequence is a multiple of 2 x CP", checked="validate_args")
def context_parallel(e: Effective) -> Iterator[Violation]:
    context = e.layout.context
    if context > 1 and e.seq_length and e.seq_length % (2 * context):
        message = f"sequences of {e.seq_length} tokens are not a multiple of 2 x CP = {2 * context}"
        yield Violation(message, ("seq_length", "context_parallel_size"),
                        choices("seq_length", multiples(2 * context, e.seq_length)))  # fmt: skip


@rule("MW303", "hidden size is a multiple of the heads unless kv_channels is set", checked="validate_args")
def head_size(e: Effective) -> Iterator[Violation]:
    hidden, heads = e.hidden_size, e.num_attention_heads
    if hidden and heads and not e.kv_channels and hidden % heads:
        yield Violation(
            f"a hidden size of {hidden} is not a multiple of {heads} heads: set the head size, kv_channels",
            ("hidden_size", "num_attention_heads"),
            (
                *choices("hidden_size", multiples(heads, hidden)),
                *choices("num_attention_heads", divisors(hidden, heads)),
            ),
        )


@rule("MW304", "context parallelism and FP8 need Transformer Engine", checked="nowhere: dies in the first step")
def transformer_engine(e: Effective) -> Iterator[Violation]:
    if e.transformer_impl != "local":
        return
    for name, is_wanted, off in (("context_parallel_size", e.layout.context > 1, 1), ("fp8", bool(e.fp8), None)):
        if is_wanted:
            what = "context parallelism" if name == "context_parallel_size" else "FP8"
            message = f"{what} needs Transformer Engine, and transformer_impl is local"
            yield Violation(message, (name, "transformer_impl"), choices(name, [off]))


@rule("MW306", "one kind of positions", checked="validate_args")
def position_kind(e: Effective) -> Iterator[Violation]:
    kind = e.position_embedding_type
    if e.values.get("add_position_embedding") is False and kind != "rope":
        message = f"no_position_embedding is an older word for rope, and position_embedding_type is {kind}"
        yield Violation(message, ("add_position_embedding", "position_embedding_type"))
    if kind == "mrope" and not e.mrope_section:
        yield Violation("position_embedding_type = mrope needs mrope_section", ("mrope_section",))
    if kind == "relative" and e.transformer_impl == "local":
        message = "relative positions need Transformer Engine, and transformer_impl is local"
        yield Violation(message, ("position_embedding_type", "transformer_impl"))


needs("MW307", "multi-token prediction works with rotary positions or none",
      when={"mtp_num_layers": ON}, need={"position_embedding_type": ("rope", "none")})  # fmt: skip
needs("MW308", "interleaved rotary positions are not for latent attention",
      when={"rotary_interleaved": ON}, need={"multi_latent_attention": OFF}, checked="TransformerConfig")  # fmt: skip
needs("MW309", "fused rotary positions of latent attention are for yarn",
      when={"multi_latent_attention": ON, "apply_rope_fusion": ON}, need={"rope_type": ("yarn", None)},
      checked="TransformerConfig", spans=(nvidia("0.13"), rocm("0.15")))  # fmt: skip
needs("MW310", "latent attention has no key/value groups",
      when={"multi_latent_attention": ON}, need={"group_query_attention": OFF},
      spans=(nvidia("0.16"), rocm("0.16")))  # fmt: skip
needs("MW346", "normalized latent attention without query latents needs Transformer Engine",
      when={"multi_latent_attention": ON, "qk_layernorm": ON, "q_lora_rank": OFF, "transformer_impl": ("local",)},
      need={"qk_layernorm": OFF}, checked="nowhere: dies when the layers are built",
      spans=(nvidia("0.19"),))  # fmt: skip
needs("MW329", "latents are cached without fused rotary positions",
      when={"multi_latent_attention": ON, "cache_mla_latents": ON}, need={"apply_rope_fusion": OFF},
      checked="TransformerConfig")  # fmt: skip
needs("MW311", "fused down-projections are those of latent attention",
      when={"mla_down_proj_fusion": ON}, need={"multi_latent_attention": ON})  # fmt: skip
needs("MW312", "rope_type is for latent attention",
      when={"multi_latent_attention": OFF, "rope_type": ON}, need={"rope_type": ("rope",)},
      checked="TransformerConfig", spans=(nvidia("0.12"), rocm("0.15")))  # fmt: skip
needs("MW313", "the gated output is not for latent attention",
      when={"attention_output_gate": ON}, need={"multi_latent_attention": OFF, "fused_single_qkv_rope": OFF},
      checked="TransformerConfig")  # fmt: skip
needs("MW314", "local attention is a layer specification of its own",
      when={"attention_backend": ("local",)}, need={"spec": ON})  # fmt: skip
needs("MW315", "fused single rope was not for interleaved rotary positions",
      when={"rotary_interleaved": ON, "apply_rope_fusion": ON}, need={"rotary_interleaved": OFF},
      checked="TransformerConfig", spans=(nvidia(until="0.14"), rocm(until="0.15")))  # fmt: skip


needs("MW322", "rotary positions of latent attention were not fused",
      when={"multi_latent_attention": ON}, need={"apply_rope_fusion": OFF}, checked="TransformerConfig",
      spans=(nvidia("0.11", "0.13"),))  # fmt: skip
needs("MW320", "interleaved rotary positions wanted to hear of Megatron Core",
      when={"rotary_interleaved": ON}, need={"deprecated_use_mcore_models": ON},
      spans=(rocm("0.10", "0.16"),))  # fmt: skip
needs("MW321", "multi-token prediction was not for context parallelism",
      when={"mtp_num_layers": ON}, need={"context_parallel_size": (1,)}, spans=(nvidia(until="0.14"),))  # fmt: skip


needs("MW323", "attention that does not depend on the batch is FlashAttention",
      when={"batch_invariant_mode": ON}, need={"attention_backend": ("flash",)},
      checked="TransformerConfig")  # fmt: skip


LINEAR = ("gated_delta_net", "gdn")
"""Its names in 0.19 and in 0.20."""
LINEAR_SIZES = ("linear_attention_freq", "linear_conv_kernel_dim", "linear_key_head_dim", "linear_value_head_dim",
                   "linear_num_key_heads", "linear_num_value_heads")  # fmt: skip


@rule("MW324", "linear attention has its sizes", checked="TransformerConfig")
def linear_attention(e: Effective) -> Iterator[Violation]:
    if e.experimental_attention_variant not in LINEAR:
        return
    missing = [dest for dest in LINEAR_SIZES if e.values.get(dest) is None]
    if missing:
        message = f"experimental_attention_variant = {e.experimental_attention_variant} needs {', '.join(missing)}"
        yield Violation(message, ("experimental_attention_variant", *missing))
        return
    keys, values, ranks = e.linear_num_key_heads, e.linear_num_value_heads, e.layout.tensor * e.layout.context
    if values % keys:
        message = f"{values} value heads of linear attention are not a multiple of {keys} key heads"
        yield Violation(message, ("linear_num_value_heads", "linear_num_key_heads"))
    for dest, count in (("linear_num_key_heads", keys), ("linear_num_value_heads", values)):
        if count % ranks:
            message = f"{dest} = {count} is not a multiple of TP x CP = {ranks}"
            yield Violation(message, (dest,), choices(dest, multiples(ranks, count)))


needs("MW325", "sparse attention has no fused rotary positions",
      when={"experimental_attention_variant": ("dsa",)}, need={"apply_rope_fusion": OFF},
      checked="TransformerConfig")  # fmt: skip
INFERENCE_ONLY = ("inference_fuse_tp_communication", "inference_disable_triton_nvls_kernels")
for number, dest in zip(("MW326", "MW327"), INFERENCE_ONLY, strict=True):
    needs(number, "inference kernels are for inference layers",
          when={dest: ON}, need={"transformer_impl": ("inference_optimized",)},
          checked="TransformerConfig")  # fmt: skip


@rule("MW328", "batches of inference are cut for a pipeline", checked="validate_args")
def inference_threshold(e: Effective) -> Iterator[Violation]:
    key = "inference_batch_times_seqlen_threshold"
    threshold = e.given.get(key)  # its default was 512 in 0.9, which nobody checked
    if threshold is not None and threshold > -1 and e.layout.pipeline == 1:
        yield Violation(f"{key} = {threshold} needs PP > 1", (key, "pipeline_model_parallel_size"), choices(key, [-1]))


@rule("MW316", "a window is two sizes", checked="nowhere: dies in the first step")
def window(e: Effective) -> Iterator[Violation]:
    sizes = str(e.window_size).strip("()[]").split(",") if e.window_size is not None else []
    if e.window_size is not None and len(sizes) != 2:
        yield Violation(f"window_size takes two sizes (left, right), not {len(sizes)}", ("window_size",))


@rule("MW317", "layers without rotary positions follow a pattern of the layers", checked="TransformerConfig")
def no_rope(e: Effective) -> Iterator[Violation]:
    layers = e.num_layers
    if not e.no_rope_freq or not layers:
        return
    try:
        pattern = read_pattern(str(e.no_rope_freq))
    except ValueError as problem:
        yield Violation(f"no_rope_freq = {problem}", ("no_rope_freq",))
        return
    if pattern == 0:
        return
    if e.flash_decode:
        yield Violation("no_rope_freq does not work with flash_decode", ("no_rope_freq", "flash_decode"))
    if isinstance(pattern, int) and layers % pattern:
        message = f"{layers} layers are not a multiple of no_rope_freq = {pattern}"
        yield Violation(message, ("no_rope_freq", "num_layers"), choices("no_rope_freq", divisors(layers, pattern)))
    if isinstance(pattern, list) and len(pattern) != layers:
        message = f"no_rope_freq describes {len(pattern)} layers, and the model has {layers}"
        yield Violation(message, ("no_rope_freq", "num_layers"))


@rule("MW318", "the largest attention logit is clipped by a share of it", checked="validate_args")
def clip(e: Effective) -> Iterator[Violation]:
    if not e.qk_clip:
        return
    if not 0 < (e.qk_clip_alpha or 0) < 1:
        yield Violation(f"qk_clip_alpha = {e.qk_clip_alpha} is not between 0 and 1", ("qk_clip_alpha",))
    if (e.qk_clip_threshold or 0) <= 0:
        yield Violation(f"qk_clip_threshold = {e.qk_clip_threshold} is not above 0", ("qk_clip_threshold",))


@rule("MW319", "hybrid context parallelism packs sequences", checked="validate_args")
def hybrid_context(e: Effective) -> Iterator[Violation]:
    if not e.hybrid_context_parallel:
        return
    wrong = {"pipeline_model_parallel_size": e.layout.pipeline > 1, "use_megatron_fsdp": bool(e.use_megatron_fsdp),
             "dataloader_type": e.dataloader_type != "single",
             "calculate_per_token_loss": not e.calculate_per_token_loss}  # fmt: skip
    for dest in (name for name, is_wrong in wrong.items() if is_wrong):
        message = f"hybrid_context_parallel does not work with {dest} = {e.values.get(dest)}"
        yield Violation(message, (dest, "hybrid_context_parallel"))
