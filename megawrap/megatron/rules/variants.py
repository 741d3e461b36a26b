"""MW392, MW393, MW420–MW422, MW440, MW441: kinds of attention, runs that repeat exactly, and words that are read as
patterns. Sources: validate_args, argument types and TransformerConfig of Megatron-LM core_v0.9.0 to core_v0.19.0."""

from __future__ import annotations

import re
from collections.abc import Iterator

from megawrap.estimate.pattern import read_pattern
from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, needs, nvidia, rocm, rule

CP = "context_parallel_size"
PATTERNS = ("moe_layer_freq", "no_rope_freq", "window_attn_skip_freq", "linear_attention_freq")
READ_SINCE = (0, 12, 3)
"""Before it, patterns were evaluated without a look at their letters."""

needs("MW392", "flash attention was not for runs that repeat exactly",
      when={"deterministic_mode": ON}, need={"use_flash_attn": OFF},
      spans=(nvidia(until="0.19"), rocm(until="0.19")))  # fmt: skip
needs("MW393", "communication of TP is not overlapped in runs that repeat exactly",
      when={"deterministic_mode": ON}, need={"tp_comm_overlap": OFF},
      spans=(nvidia("0.19"), rocm("0.19")))  # fmt: skip


@rule("MW420", "sparse attention has limits of its own", checked="TransformerConfig",
      spans=(nvidia("0.16"), rocm("0.16")))  # fmt: skip
def sparse(e: Effective) -> Iterator[Violation]:
    if e.experimental_attention_variant != "dsa":
        return
    key, kinds = "experimental_attention_variant", e.cp_comm_type or ()
    kinds = kinds if isinstance(kinds, list | tuple) else [kinds]
    is_gathered = bool(kinds) and all(str(kind).replace("_", "").lower() == "allgather" for kind in kinds)
    if e.layout.context > 1 and not (is_gathered and e.core >= (0, 19)):
        how = " without cp_comm_type = allgather" if e.core >= (0, 19) else ""
        yield Violation(f"sparse attention does not work with CP = {e.layout.context}{how}", (CP, "cp_comm_type", key),
                        choices(CP, [1]))  # fmt: skip
    for dest, least in (("dsa_indexer_topk_freq", 1), ("dsa_indexer_skip_topk_offset", 0)):
        value = e.values.get(dest)
        if value is not None and value < least:
            yield Violation(f"{dest} = {value} is below {least}", (dest,), choices(dest, [least]))


needs("MW422", "sparse attention has no biases",
      when={"experimental_attention_variant": ("dsa",)}, need={"add_bias_linear": OFF}, checked="TransformerConfig",
      spans=(nvidia("0.19"), rocm("0.19")))  # fmt: skip
needs("MW421", "attention that does not depend on the batch is one of flash attention's kernels",
      when={"batch_invariant_mode": ON},
      need={"flash_attention_version": (3, 4), CP: (1,), "attention_dropout": (0.0,)},
      checked="TransformerConfig", spans=(nvidia("0.19"), rocm("0.19")))  # fmt: skip


@rule("MW440", "patterns of layers are numbers, or lists in Python's words without spaces", checked="parse_args")
def patterns(e: Effective) -> Iterator[Violation]:
    for dest in PATTERNS:
        words = e.values.get(dest)
        if not isinstance(words, str):
            continue
        stray = re.search(r"[^,\d\[\]()+*]", words) if "[" in words and e.core >= READ_SINCE else None
        if stray is not None:
            message = f"{dest} = {words!r} has {stray[0]!r}: a pattern is written as in ([0]*1+[1]*3), without spaces"
            yield Violation(message, (dest,), choices(dest, _tidy(words)))
            continue
        try:
            read_pattern(words)
        except ValueError as problem:
            yield Violation(f"{dest} = {words!r}: {problem}", (dest,))


def _tidy(words: str) -> list[str]:
    """The same words without spaces, where they are a pattern."""
    plain = re.sub(r"\s", "", words)
    try:
        read_pattern(plain)
    except ValueError:
        return []
    return [plain] if "[" in plain else []


@rule("MW441", "a window is whole numbers in round brackets, or in none", checked="parse_args")
def window(e: Effective) -> Iterator[Violation]:
    words = e.window_size
    if not isinstance(words, str):
        return
    try:
        _ = [int(word) for word in words.strip("()").split(",")]
    except ValueError:
        message = f"window_size = {words!r} is not of the form (128,0)"
        yield Violation(message, ("window_size",))
