"""MW105, MW13x, MW14x: pipeline stages. Sources: validate_args and TransformerConfig of Megatron-LM core_v0.19.0."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.parallel import PP
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, divisors, needs, nvidia, rocm, rule
from megawrap.megatron.stages import COUNTED, NUMBERED, VIRTUAL, counted_layers, written_out

PREDICTION = (nvidia("0.14"), rocm("0.14"))
"""Releases whose layouts have prediction layers."""
ENDS = ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")


def has_ends(e: Effective) -> bool:
    """Whether the first or last stage has a number of layers of its own."""
    return any(e.values.get(name) is not None for name in ENDS)


@rule("MW105", "the number of layers is a multiple of PP", checked="validate_args, when the layers are built")
def layers(e: Effective) -> Iterator[Violation]:
    count, pipeline = counted_layers(e.values), e.layout.pipeline
    if has_ends(e) or e.pipeline_model_parallel_layout or e.hybrid_layer_pattern or count % pipeline == 0:
        return
    yield Violation(
        f"{count} layers cannot be divided into PP = {pipeline} stages: {count} % {pipeline} = {count % pipeline}",
        (PP, "num_layers"),
        choices(PP, divisors(count, pipeline)),
    )


@rule("MW130", "one way of saying the virtual stages", checked="validate_args")
def one_way(e: Effective) -> Iterator[Violation]:
    said = [name for name in VIRTUAL if e.values.get(name) is not None]
    if len(said) > 1:
        yield Violation(f"{' and '.join(said)} say the same thing: set one of them", tuple(said))


@rule("MW131", "layers of a virtual stage divide those of a stage", checked="validate_args")
def virtual_layers(e: Effective) -> Iterator[Violation]:
    each, pipeline = e.num_layers_per_virtual_pipeline_stage, e.layout.pipeline
    if each is None:
        return
    if has_ends(e):
        message = "stages of different size take num_virtual_stages_per_pipeline_rank"
        yield Violation(message, ("num_layers_per_virtual_pipeline_stage", *ENDS))
    in_stage = counted_layers(e.values) // pipeline
    if counted_layers(e.values) % pipeline == 0 and (each < 1 or in_stage % each):
        yield Violation(
            f"{in_stage} layers in a stage cannot be divided into virtual stages of {each}",
            ("num_layers_per_virtual_pipeline_stage", PP),
            choices("num_layers_per_virtual_pipeline_stage", divisors(in_stage, each)),
        )


@rule("MW132", "an interleaved schedule needs several stages", checked="validate_args")
def interleaved(e: Effective) -> Iterator[Violation]:
    if e.layout.virtual > 1:
        yield from _too_few_stages(e)


@rule("MW145", "even one virtual stage needed several stages", checked="validate_args",
      spans=(nvidia(until="0.14"), rocm(until="0.15")))  # fmt: skip
def one_virtual_stage(e: Effective) -> Iterator[Violation]:
    if e.layout.virtual == 1 and any(e.values.get(name) is not None for name in NUMBERED):
        yield from _too_few_stages(e)


def _too_few_stages(e: Effective) -> Iterator[Violation]:
    virtual, pipeline = e.layout.virtual, e.layout.pipeline
    least = 2 if e.overlap_p2p_comm or e.values.get("overlap_p2p_comm") is None else 3
    if pipeline < least:
        why = "" if least == 2 else " without overlap_p2p_comm"
        what = "1 virtual stage" if virtual == 1 else f"{virtual} virtual stages"
        message = f"{what}{why} on a rank: PP >= {least} is needed, and PP = {pipeline}"
        yield Violation(message, (PP, *[name for name in VIRTUAL if e.values.get(name) is not None]))


@rule("MW134", "the layers of the middle stages can be divided", checked="TransformerConfig, when the layers are built")
def uneven(e: Effective) -> Iterator[Violation]:
    if not has_ends(e) or e.pipeline_model_parallel_layout:
        return
    left, middle, virtual = e.num_layers or 0, e.layout.pipeline, e.layout.virtual
    for name in ENDS:
        count = e.values.get(name)
        if count is None:
            continue
        if count < 1 or count % virtual:
            message = f"{name} = {count} is not a positive multiple of the {virtual} virtual stages of a rank"
            yield Violation(message, (name,), choices(name, [virtual]))
        left, middle = left - count, middle - 1
    if middle < 0:
        return
    if bool(left) != bool(middle) or (middle and left % middle):
        yield Violation(f"{left} layers remain for {middle} middle stages", (*ENDS, PP, "num_layers"))
    elif middle and left // middle % virtual:
        message = f"{left // middle} layers in a middle stage cannot be divided into {virtual} virtual stages"
        yield Violation(message, (*ENDS, PP, "num_layers"))


@rule("MW140", "a first and a last stage are two stages", checked="nowhere: fewer layers are built than asked for")
def two_ends(e: Effective) -> Iterator[Violation]:
    said = [name for name in ENDS if e.values.get(name) is not None]
    if len(said) > e.layout.pipeline:
        yield Violation(f"{' and '.join(said)} need PP >= 2, and PP = {e.layout.pipeline}", (*said, PP))


@rule("MW135", "the embedding and the loss are counted only in even stages", checked="TransformerConfig")
def counted(e: Effective) -> Iterator[Violation]:
    said = [name for name in COUNTED if e.values.get(name)]
    others = [name for name in (*ENDS, "pipeline_model_parallel_layout") if e.values.get(name) is not None]
    if said and others:
        yield Violation(f"{' and '.join(said)} cannot be used with {' and '.join(others)}", (*said, *others))
    in_stage = counted_layers(e.values) // e.layout.pipeline
    if said and not others and counted_layers(e.values) % e.layout.pipeline == 0 and in_stage % e.layout.virtual:
        message = f"{in_stage} layers in a stage cannot be divided into {e.layout.virtual} virtual stages"
        yield Violation(message, (*said, PP))


@rule("MW141", "the embedding and the loss used to count as a whole stage",
      checked="TransformerConfig, when the layers are built",
      spans=(nvidia(until="0.12"), rocm(until="0.15")))  # fmt: skip
def counted_stages(e: Effective) -> Iterator[Violation]:
    said = [name for name in COUNTED if e.values.get(name)]
    left = e.layout.pipeline - len(said)
    if said and e.layout.virtual == 1 and (left < 1 or (e.num_layers or 0) % left):
        message = f"{e.num_layers} layers for the {max(0, left)} stages that {' and '.join(said)} leave"
        yield Violation(message, (*said, PP, "num_layers"))


@rule("MW136", "a pipeline layout names every layer once", checked="TransformerConfig")
def layout(e: Effective) -> Iterator[Violation]:
    text = e.pipeline_model_parallel_layout
    if not text:
        return
    names, key = written_out(text), "pipeline_model_parallel_layout"
    letters = "".join(names)
    if len(names) % e.layout.pipeline:
        yield Violation(f"{len(names)} stages in the layout cannot be shared by PP = {e.layout.pipeline}", (key, PP))
    if set(letters) - set("EtmL"):
        yield Violation(f"a layout has the letters E, t, m and L only: {text}", (key,))
    elif not (letters.startswith("E") and letters.endswith("L") and letters.count("E") == letters.count("L") == 1):
        yield Violation("a layout starts with its only E and ends with its only L", (key,))
    if letters.count("t") != (e.num_layers or 0):
        message = f"the layout has {letters.count('t')} layers (t), and num_layers = {e.num_layers}"
        yield Violation(message, (key, "num_layers"))
    if letters.count("m") != (e.mtp_num_layers or 0):
        message = f"the layout has {letters.count('m')} prediction layers (m), and mtp_num_layers = {e.mtp_num_layers}"
        yield Violation(message, (key, "mtp_num_layers"))
    said = [name for name in ENDS if e.values.get(name) is not None]
    if said:
        yield Violation(f"a pipeline layout cannot be used with {' and '.join(said)}", (key, *said))


@rule("MW146", "prediction layers were not in a layout", checked="TransformerConfig", spans=(nvidia("0.13", "0.14"),))
def no_prediction_in_layout(e: Effective) -> Iterator[Violation]:
    if "m" in "".join(written_out(e.pipeline_model_parallel_layout or "")):
        yield Violation("this release has no prediction layers (m) in a layout", ("pipeline_model_parallel_layout",))


@rule("MW147", "prediction layers are together, after all others", checked="TransformerConfig",
      spans=PREDICTION)  # fmt: skip
def prediction_in_layout(e: Effective) -> Iterator[Violation]:
    key, pipeline = "pipeline_model_parallel_layout", e.layout.pipeline
    names = written_out(e.values.get(key) or "")
    if "m" not in "".join(names) or len(names) % pipeline:
        return
    if "t" in "".join(names).partition("m")[2]:
        yield Violation("prediction layers (m) come after all layers (t) of a layout", (key,))
    if "m" in "".join(names[:-pipeline]):
        yield Violation("prediction layers (m) are in the last virtual stage of a rank", (key,))
    counts = {name.count("m") for name in names[-pipeline:]} - {0, e.mtp_num_layers or 0}
    if counts:
        yield Violation("prediction layers (m) of a layout are all in one stage", (key, "mtp_num_layers"))


@rule("MW148", "prediction layers were in the last stage", checked="TransformerConfig",
      spans=(nvidia("0.15", "0.16"), rocm("0.14", "0.16")))  # fmt: skip
def prediction_with_loss(e: Effective) -> Iterator[Violation]:
    key, pipeline = "pipeline_model_parallel_layout", e.layout.pipeline
    names = written_out(e.values.get(key) or "")
    is_last = "m" not in "".join(names[-pipeline:-1]) and ("m" not in names[-1] or "L" in names[-1])
    if len(names) % pipeline == 0 and not is_last:
        yield Violation("this release has prediction layers (m) in the last stage, with the loss (L)", (key,))


@rule("MW149", "the limit of deferred gradients is not negative", checked="TransformerConfig")
def deferral(e: Effective) -> Iterator[Violation]:
    limit = e.wgrad_deferral_limit
    if e.defer_embedding_wgrad_compute and limit is not None and limit < 0:
        message = f"wgrad_deferral_limit = {limit} is negative; 0 defers all"
        yield Violation(message, ("wgrad_deferral_limit",), choices("wgrad_deferral_limit", [0]))


needs("MW137", "weight gradients of the embedding can only be deferred in a pipeline",
      when={"defer_embedding_wgrad_compute": ON}, need={PP: tuple(range(2, 129)), "gradient_accumulation_fusion": ON},
      checked="TransformerConfig")  # fmt: skip
needs("MW138", "warm-up and flush overlap only when point-to-point communication does",
      when={"overlap_p2p_comm_warmup_flush": ON}, need={"overlap_p2p_comm": ON},
      checked="TransformerConfig")  # fmt: skip


@rule("MW144", "an embedding alone in a stage leaves stages for the layers", checked="validate_args",
      spans=(nvidia(until="0.11"), rocm(until="0.15")))  # fmt: skip
def embedding_alone(e: Effective) -> Iterator[Violation]:
    left = e.layout.pipeline - 1
    if e.standalone_embedding_stage and (left < 1 or (e.num_layers or 0) % left):
        message = (
            f"standalone_embedding_stage leaves {left} of PP = {e.layout.pipeline} stages for {e.num_layers} layers"
        )
        yield Violation(message, ("standalone_embedding_stage", PP), choices("standalone_embedding_stage", [False]))


needs("MW142", "several residual streams are not sent between stages",
      when={"enable_mhc_connections": ON}, need={PP: (1,)}, checked="TransformerConfig")  # fmt: skip
needs("MW143", "layers were offloaded to the CPU only without a pipeline and without recomputation",
      when={"cpu_offloading": ON}, need={PP: (1,), "recompute_granularity": OFF}, checked="TransformerConfig",
      spans=(nvidia(until="0.16"), rocm(until="0.16")))  # fmt: skip
needs("MW139", "layers are offloaded to the CPU only without a pipeline and without recomputation",
      when={"cpu_offloading_num_layers": tuple(range(1, 1025))}, need={PP: (1,), "recompute_granularity": OFF},
      checked="TransformerConfig", spans=(nvidia("0.16"), rocm("0.16")))  # fmt: skip
