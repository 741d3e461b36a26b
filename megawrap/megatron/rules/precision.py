"""MW33x, MW34x: number formats. Sources: validate_args and TransformerConfig of Megatron-LM core_v0.19.0; the shapes
that FP8 kernels take: Transformer Engine's documentation."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.parallel import EP, TP
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, multiples, needs, nvidia, rocm, rule

# Rows and columns of an FP8 matrix product come in these steps.
FP8_STEP, MXFP8_STEP = 16, 32
MXFP8_ARCHES = ("gfx950", "sm_100", "sm_103", "sm_120")


@rule("MW330", "one number format", checked="validate_args")
def one_format(e: Effective) -> Iterator[Violation]:
    if e.fp16 and e.bf16:
        yield Violation("fp16 and bf16 are both set", ("fp16", "bf16"))
    if e.fp4 and e.fp8:
        yield Violation("fp4_format and fp8_format are both set", ("fp4", "fp8"))


needs("MW331", "cross entropy in fp16 is for fp16", when={"fp16_lm_cross_entropy": ON}, need={"fp16": ON})  # fmt: skip


@rule("MW332", "a residual stream in fp32 is for bf16 and fp16", checked="validate_args")
def residual(e: Effective) -> Iterator[Violation]:
    if e.fp32_residual_connection and not (e.fp16 or e.bf16):
        message = "fp32_residual_connection is for bf16 and fp16, and the model is fp32"
        yield Violation(message, ("fp32_residual_connection", "bf16"), choices("fp32_residual_connection", [False]))


@rule("MW333", "parameters are gathered in FP8 where something gathers them", checked="validate_args")
def gather_in_fp8(e: Effective) -> Iterator[Violation]:
    is_sharded = e.given.get("use_distributed_optimizer") or e.use_distributed_optimizer
    if e.given.get("fp8_param_gather") and not (is_sharded or e.use_torch_fsdp2 or e.use_megatron_fsdp):
        message = "fp8_param_gather without a distributed optimizer or fully sharded data parallel"
        yield Violation(message, ("fp8_param_gather", "use_distributed_optimizer"),
                        choices("use_distributed_optimizer", [True]))  # fmt: skip


needs("MW334", "FP8 parameters are for FP8", when={"fp8_param_gather": ON}, need={"fp8": ON},
      checked="TransformerConfig", spans=(nvidia("0.12"), rocm("0.15")))  # fmt: skip
needs("MW335", "FP4 parameters are for FP4", when={"fp4_param_gather": ON}, need={"fp4": ON})  # fmt: skip
needs("MW345", "FP4 parameters are for FP4", when={"fp4_param": ON}, need={"fp4": ON})  # fmt: skip
needs("MW347", "the router was padded for FP8 only",
      when={"fp4": ON, "moe_router_padding_for_fp8": ON}, need={"fp8": ON},
      checked="TransformerConfig", spans=(nvidia(until="0.16"), rocm(until="0.16")))  # fmt: skip
needs("MW348", "a recipe of your own needs its factory",
      when={"fp4": ON, "fp4_recipe": ("custom",)}, need={"fp4_quantizer_factory": ON},
      checked="TransformerConfig", spans=(nvidia("0.16"), rocm("0.16")))  # fmt: skip
needs("MW349", "parameters were not kept in MXFP8",
      when={"fp8": ON, "fp8_recipe": ("mxfp8",)}, need={"fp8_param_gather": OFF},
      checked="TransformerConfig", spans=(nvidia("0.12", "0.13"),))  # fmt: skip
needs("MW336", "first and last layers in bf16 are for scales that have no history",
      when={"fp8": ON, "first_last_layers_bf16": ON},
      need={"fp8_recipe": ("tensorwise", "blockwise", "mxfp8", "custom")},
      checked="TransformerConfig")  # fmt: skip
needs("MW337", "a recipe of your own needs its factory",
      when={"fp8": ON, "fp8_recipe": ("custom",)}, need={"fp8_quantizer_factory": ON},
      checked="TransformerConfig")  # fmt: skip
needs("MW338", "the output projection in FP8 is for MXFP8",
      when={"fp8_output_proj": ON}, need={"fp8": ON, "fp8_recipe": ("mxfp8",)},
      checked="TransformerConfig")  # fmt: skip
needs("MW340", "experts with fp16 were not supported",
      when={EP: tuple(range(2, 1025))}, need={"fp16": OFF},
      spans=(nvidia(until="0.16"), rocm(until="0.16")))  # fmt: skip


@rule("MW341", "no more bf16 layers at the ends than a stage has", checked="TransformerConfig")
def bf16_ends(e: Effective) -> Iterator[Violation]:
    if not (e.fp8 and e.first_last_layers_bf16 and e.num_layers):
        return
    most = e.num_layers // e.layout.pipeline
    for dest in ("num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16"):
        count = e.values.get(dest)
        if count is not None and not 0 <= count <= most:
            message = f"{dest} = {count}, and a stage has {most} layers"
            yield Violation(message, (dest,), choices(dest, [most]))


@rule("MW342", "the GPU has the number format", checked="nowhere: dies in the first matrix product")
def supported(e: Effective) -> Iterator[Violation]:
    if e.gpu is None or not e.fp8:
        return
    if not e.gpu.fp8_tflops:
        yield Violation(f"{e.gpu.name} has no FP8", ("fp8", "fp8_recipe"))
    elif e.fp8_recipe == "mxfp8" and not e.gpu.arch.startswith(MXFP8_ARCHES):
        message = f"{e.gpu.name} ({e.gpu.arch}) has no MXFP8: MI350X, MI355X and Blackwell have"
        yield Violation(message, ("fp8_recipe",), choices("fp8_recipe", ["tensorwise", "delayed"]))


@rule("MW343", "FP8 matrices have sides that are multiples of 16", checked="nowhere: dies in the first matrix product")
def fp8_sides(e: Effective) -> Iterator[Violation]:
    if not e.fp8 or not (e.seq_length and e.micro_batch_size and e.hidden_size):
        return
    step = MXFP8_STEP if e.fp8_recipe == "mxfp8" else FP8_STEP
    split = e.layout.context * (e.layout.tensor if e.sequence_parallel else 1)
    tokens = e.micro_batch_size * e.seq_length // split
    width = (e.ffn_hidden_size or 0) // e.layout.tensor
    for side, what, dests, legal in (
        (tokens, "tokens on each rank", ("seq_length", "micro_batch_size"), multiples(step * split, e.seq_length)),
        (e.hidden_size, "as hidden size", ("hidden_size",), []),
        (width, "as feed-forward width of a rank", ("ffn_hidden_size", TP), []),
    ):
        if side % step:
            yield Violation(f"FP8 needs multiples of {step}, and there are {side} {what}", dests,
                            choices(dests[0], legal))  # fmt: skip


@rule("MW344", "experts in FP8 are padded where tokens are counted", checked="TransformerConfig")
def router_padding(e: Effective) -> Iterator[Violation]:
    for dest in ("moe_router_padding_for_quantization", "moe_router_padding_for_fp8"):
        if not e.values.get(dest):
            continue
        if not (e.fp8 or e.fp4):
            yield Violation(f"{dest} without FP8 or FP4", (dest, "fp8"), choices(dest, [False]))
        if e.moe_token_dispatcher_type in ("allgather", "alltoall_seq"):
            message = f"{dest} does not work with moe_token_dispatcher_type = {e.moe_token_dispatcher_type}"
            yield Violation(message, (dest, "moe_token_dispatcher_type"),
                            choices("moe_token_dispatcher_type", ["alltoall"]))  # fmt: skip
