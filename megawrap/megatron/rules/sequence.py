"""MW3xx: sequence, positions, attention, recomputation, number formats. Sources as in ``batch``."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.rules.registry import Effective, Violation, choices, divisors, multiples, rule


@rule("MW301", "positions reach as far as the sequence", checked="validate_args")
def positions(e: Effective) -> Iterator[Violation]:
    if e.seq_length and e.max_position_embeddings and e.seq_length > e.max_position_embeddings:
        yield Violation(
            f"sequences of {e.seq_length} tokens, but positions for {e.max_position_embeddings}",
            ("seq_length", "max_position_embeddings"),
            choices("seq_length", [e.max_position_embeddings]),
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
            choices("num_attention_heads", divisors(hidden, heads)),
        )


@rule("MW304", "context parallelism and FP8 need Transformer Engine", checked="nowhere: dies in the first step")
def transformer_engine(e: Effective) -> Iterator[Violation]:
    if e.transformer_impl != "local":
        return
    for name, is_wanted, off in (("context_parallel_size", e.layout.context > 1, 1), ("fp8", bool(e.fp8), "null")):
        if is_wanted:
            what = "context parallelism" if name == "context_parallel_size" else "FP8"
            message = f"{what} needs Transformer Engine, and transformer_impl is local"
            yield Violation(message, (name, "transformer_impl"), choices(name, [off]))


@rule("MW305", "recomputing whole layers needs a method and a number of layers", checked="TransformerConfig")
def recompute(e: Effective) -> Iterator[Violation]:
    if e.recompute_granularity == "full":
        for dest, value in (("recompute_method", "uniform"), ("recompute_num_layers", 1)):
            if not e.values.get(dest):
                message = f"recompute granularity full needs {dest}"
                yield Violation(message, (dest, "recompute_granularity"), choices(dest, [value]))
    if e.recompute_granularity == "selective" and e.recompute_method:
        yield Violation("selective recomputation takes no method", ("recompute_method", "recompute_granularity"))
