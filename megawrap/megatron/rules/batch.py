"""MW2xx: batch, length of the run, learning rate. Sources: Megatron-LM core_v0.19.0 and ROCm/Megatron-LM 2026-02."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, multiples, needs, nvidia, rule

REQUIRED = ("num_layers", "hidden_size", "num_attention_heads", "max_position_embeddings", "seq_length",
            "micro_batch_size", "lr", "tokenizer_type")  # fmt: skip


@rule("MW201", "the arguments without which nothing can be trained", checked="validate_args, OptimizerParamScheduler")
def required(e: Effective) -> Iterator[Violation]:
    for dest in REQUIRED:
        if e.values.get(dest) is None:
            yield Violation(f"{dest} is not set", (dest,))


@rule(
    "MW202", "the global batch is a multiple of micro batch x DP", checked="validate_args, num_microbatches_calculator"
)
def global_batch(e: Effective) -> Iterator[Violation]:
    batch, micro, data = e.global_batch_size, e.micro_batch_size, e.layout.data
    if not (batch and micro and data) or batch < 1 or batch % (micro * data) == 0:
        return
    step = micro * data
    yield Violation(
        f"a global batch of {batch} sequences is not a multiple of micro batch x DP = {micro} x {data} = {step}",
        ("global_batch_size", "micro_batch_size"),
        choices("global_batch_size", multiples(step, batch)),
    )


@rule("MW203", "warm-up is shorter than the decay", checked="OptimizerParamScheduler")
def warmup(e: Effective) -> Iterator[Violation]:
    unit = "samples" if e.train_samples else "iters"
    length, decay_name, warmup_name = f"train_{unit}", f"lr_decay_{unit}", f"lr_warmup_{unit}"
    decay = e.values.get(length) if e.values.get(decay_name) is None else e.values[decay_name]
    if decay is None or e.skip_train:
        return
    named = decay_name if e.values.get(decay_name) is not None else length
    if decay <= 0:
        yield Violation(f"{named} = {decay} leaves nothing to decay over", (named,))
    elif e.lr_warmup_fraction is not None:
        if e.lr_warmup_fraction >= 1:
            message = f"lr_warmup_fraction = {e.lr_warmup_fraction} leaves nothing to decay"
            yield Violation(message, ("lr_warmup_fraction",), choices("lr_warmup_fraction", [0.1]))
    elif (e.values.get(warmup_name) or 0) >= decay:
        what = "steps" if unit == "iters" else unit
        yield Violation(
            f"a warm-up of {e.values[warmup_name]} {what} does not end before the decay of {decay} {what}",
            (warmup_name, named),
            choices(warmup_name, [max(0, decay // 10)]),
        )


@rule("MW204", "0 <= min_lr <= lr, and the warm-up starts below lr", checked="validate_args, OptimizerParamScheduler")
def learning_rate(e: Effective) -> Iterator[Violation]:
    if e.lr is None or e.lr < 0 or e.skip_train:
        return
    if e.min_lr is not None and e.min_lr > e.lr:
        message = f"min_lr = {e.min_lr} is above lr = {e.lr}"
        yield Violation(message, ("min_lr", "lr"), choices("min_lr", [e.lr / 10]))
    if e.min_lr is not None and e.min_lr < 0:
        yield Violation(f"min_lr = {e.min_lr} is negative", ("min_lr",), choices("min_lr", [0.0]))
    if e.lr_warmup_init is not None and e.lr_warmup_init > e.lr:
        message = f"lr_warmup_init = {e.lr_warmup_init} is above lr = {e.lr}"
        yield Violation(message, ("lr_warmup_init", "lr"), choices("lr_warmup_init", [0.0]))


@rule("MW205", "exactly one of train_iters and train_samples", checked="validate_args, training")
def length(e: Effective) -> Iterator[Violation]:
    if e.skip_train:
        return
    is_neither = not e.train_iters and not e.train_samples
    if is_neither or (e.train_iters is not None and e.train_samples is not None):
        both = "neither is set" if is_neither else "both are set"
        yield Violation(
            f"one of train_iters and train_samples decides the length: {both}", ("train_iters", "train_samples")
        )


@rule("MW206", "saving needs an interval", checked="validate_args")
def save_interval(e: Effective) -> Iterator[Violation]:
    if not e.save:
        return
    may_be_0 = e.core < ((0, 14) if e.fork == "nvidia" else (0, 15))  # and then nothing is saved
    if e.save_interval is None or (e.save_interval < 1 and not may_be_0):
        said = "not set" if e.save_interval is None else e.save_interval
        yield Violation(f"checkpoints are saved, but save_interval is {said}", ("save_interval", "save"))
    elif (
        e.save_interval
        and e.save_retain_interval is not None
        and (e.save_retain_interval < 1 or e.save_retain_interval % e.save_interval)
    ):
        message = f"save_retain_interval = {e.save_retain_interval} is not a multiple of {e.save_interval}"
        nearest = choices("save_retain_interval", multiples(e.save_interval, e.save_retain_interval))
        yield Violation(message, ("save_retain_interval", "save_interval"), nearest)


@rule("MW208", "validation needs an interval, even when it is off", checked="nowhere: dies when the data is built")
def eval_interval(e: Effective) -> Iterator[Violation]:
    # Its default became None in 0.18, and the number of validation samples is computed from it in any case.
    if e.train_iters and not e.eval_interval and not e.skip_train:
        yield Violation("eval_interval is not set", ("eval_interval",), choices("eval_interval", [1000]))


@rule("MW209", "sizes of batches are 1 or more", checked="validate_args, the first validation")
def positive(e: Effective) -> Iterator[Violation]:
    for dest in ("micro_batch_size", "global_batch_size", "eval_micro_batch_size", "eval_global_batch_size"):
        size = e.values.get(dest)
        if size is not None and size < 1 and e.said(dest):
            yield Violation(f"{dest} = {size} is not a size", (dest,), choices(dest, [1]))


@rule("MW210", "the batch of a validation is a multiple of its micro batch x DP", checked="validate_args",
      spans=(nvidia("0.17"),))  # fmt: skip
def validation_batch(e: Effective) -> Iterator[Violation]:
    batch, micro, data = e.eval_global_batch_size, e.eval_micro_batch_size, e.layout.data
    own = [dest for dest in ("eval_global_batch_size", "eval_micro_batch_size") if dest in e.given]
    if own and batch and micro and data and batch % (micro * data):
        yield Violation(
            f"a validation batch of {batch} sequences is not a multiple of {micro} x {data} = {micro * data}",
            ("eval_global_batch_size", "eval_micro_batch_size"),
            choices("eval_global_batch_size", multiples(micro * data, batch)),
        )


@rule("MW212", "steps or samples, not both", checked="validate_args")
def one_unit(e: Effective) -> Iterator[Violation]:
    if e.skip_train or bool(e.train_iters) == bool(e.train_samples):
        return
    unit, other = ("iters", "samples") if e.train_iters else ("samples", "iters")
    for dest, nothing in ((f"lr_decay_{other}", None), (f"lr_warmup_{other}", 0)):
        if e.values.get(dest, nothing) != nothing:
            yield Violation(f"train_{unit} goes with lr_decay_{unit}, not with {dest}", (dest, f"train_{unit}"))
    if e.lr_warmup_fraction is not None and e.values.get(f"lr_warmup_{unit}"):
        message = f"the warm-up is said twice: lr_warmup_fraction and lr_warmup_{unit}"
        yield Violation(message, (f"lr_warmup_{unit}", "lr_warmup_fraction"),
                        choices(f"lr_warmup_{unit}", [0]))  # fmt: skip


@rule("MW213", "weight decay is constant, or has a start and an end", checked="validate_args")
def weight_decay(e: Effective) -> Iterator[Violation]:
    if e.weight_decay is not None and e.weight_decay < 0:
        yield Violation(
            f"weight_decay = {e.weight_decay} is negative", ("weight_decay",), choices("weight_decay", [0.1])
        )
    ends = ("start_weight_decay", "end_weight_decay")
    if e.weight_decay_incr_style in (None, "constant"):
        said = [name for name in ends if e.values.get(name) is not None]
        if said:
            yield Violation(f"a constant weight decay takes no {' and no '.join(said)}", (*said, "weight_decay"))
        return
    missing = [name for name in ends if e.values.get(name) is None]
    if missing:
        message = f"weight_decay_incr_style = {e.weight_decay_incr_style} needs {' and '.join(missing)}"
        yield Violation(message, (*missing, "weight_decay_incr_style"))
    elif not 0 <= e.start_weight_decay <= e.end_weight_decay:
        message = f"weight decay grows from {e.start_weight_decay} to {e.end_weight_decay}: it may not shrink"
        yield Violation(message, ends)


@rule("MW214", "WSD needs the length of its decay", checked="OptimizerParamScheduler")
def wsd(e: Effective) -> Iterator[Violation]:
    dest = "lr_wsd_decay_samples" if e.train_samples else "lr_wsd_decay_iters"
    if e.lr_decay_style == "WSD" and e.values.get(dest) is None and not e.skip_train:
        yield Violation(f"lr_decay_style = WSD needs {dest}", (dest, "lr_decay_style"))


@rule("MW215", "the memory log comes with the iteration line", checked="validate_args")
def memory_log(e: Effective) -> Iterator[Violation]:
    interval, log = e.log_memory_interval, e.log_interval
    if interval is not None and log and interval % log:
        message = f"log_memory_interval = {interval} is not a multiple of log_interval = {log}"
        yield Violation(message, ("log_memory_interval", "log_interval"),
                        choices("log_memory_interval", multiples(log, interval)))  # fmt: skip


needs("MW216", "the learning-rate schedule is either the checkpoint's or yours",
      when={"override_opt_param_scheduler": ON}, need={"use_checkpoint_opt_param_scheduler": OFF},
      checked="OptimizerParamScheduler")  # fmt: skip
