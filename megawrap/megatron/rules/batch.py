"""MW2xx: batch, length of the run, learning rate. Sources: Megatron-LM core_v0.19.0 and ROCm/Megatron-LM 2026-02."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.rules.registry import Effective, Violation, choices, multiples, rule

REQUIRED = ("num_layers", "hidden_size", "num_attention_heads", "max_position_embeddings", "seq_length",
            "micro_batch_size", "lr", "tokenizer_type")  # fmt: skip


@rule("MW201", "the arguments without which nothing can be trained", checked="validate_args")
def required(e: Effective) -> Iterator[Violation]:
    for dest in REQUIRED:
        if e.values.get(dest) is None:
            yield Violation(f"{dest} is not set", (dest,))


@rule("MW202", "the global batch is a multiple of micro batch x DP", checked="num_microbatches_calculator")
def global_batch(e: Effective) -> Iterator[Violation]:
    batch, micro, data = e.global_batch_size, e.micro_batch_size, e.layout.data
    if not (batch and micro and data) or batch % (micro * data) == 0:
        return
    step = micro * data
    yield Violation(
        f"a global batch of {batch} sequences is not a multiple of micro batch x DP = {micro} x {data} = {step}",
        ("global_batch_size", "micro_batch_size"),
        choices("global_batch_size", multiples(step, batch)),
    )


@rule("MW203", "warm-up is shorter than the decay", checked="nowhere before OptimizerParamScheduler asserts")
def warmup(e: Effective) -> Iterator[Violation]:
    steps, decay = e.lr_warmup_iters or 0, e.lr_decay_iters or e.train_iters
    if decay and steps >= decay and not e.lr_warmup_fraction and not e.train_samples:
        yield Violation(
            f"a warm-up of {steps} steps does not end before the decay of {decay} steps",
            ("lr_warmup_iters", "lr_decay_iters" if e.lr_decay_iters else "train_iters"),
            choices("lr_warmup_iters", [max(0, decay // 10)]),
        )


@rule("MW204", "min_lr is at most lr", checked="validate_args")
def learning_rate(e: Effective) -> Iterator[Violation]:
    if e.lr is not None and e.min_lr is not None and e.min_lr > e.lr:
        message = f"min_lr = {e.min_lr} is above lr = {e.lr}"
        yield Violation(message, ("min_lr", "lr"), choices("min_lr", [e.lr / 10]))


@rule("MW205", "exactly one of train_iters and train_samples", checked="validate_args and training.py")
def length(e: Effective) -> Iterator[Violation]:
    if bool(e.train_iters) == bool(e.train_samples):
        both = "both are set" if e.train_iters else "neither is set"
        yield Violation(
            f"one of train_iters and train_samples decides the length: {both}", ("train_iters", "train_samples")
        )


@rule("MW206", "saving needs an interval", checked="validate_args")
def save_interval(e: Effective) -> Iterator[Violation]:
    if e.save and not e.save_interval:
        yield Violation("checkpoints are saved, but save_interval is not set", ("save_interval", "save"))


@rule("MW207", "parameters can only be gathered in overlap with a distributed optimizer", checked="validate_args")
def overlap_param_gather(e: Effective) -> Iterator[Violation]:
    if not e.overlap_param_gather:
        return
    if not (e.use_distributed_optimizer or e.use_megatron_fsdp):
        message = "overlap_param_gather without a distributed optimizer"
        yield Violation(message, ("overlap_param_gather", "use_distributed_optimizer"),
                        choices("use_distributed_optimizer", [True]))  # fmt: skip
    if not e.overlap_grad_reduce:
        message = "overlap_param_gather without overlap_grad_reduce"
        yield Violation(message, ("overlap_param_gather", "overlap_grad_reduce"),
                        choices("overlap_grad_reduce", [True]))  # fmt: skip


@rule("MW208", "validation needs an interval, even when it is off", checked="nowhere: dies when the data is built")
def eval_interval(e: Effective) -> Iterator[Violation]:
    # Its default became None in 0.18, and the number of validation samples is computed from it in any case.
    if e.train_iters and not e.eval_interval and not e.skip_train:
        yield Violation("eval_interval is not set", ("eval_interval",), choices("eval_interval", [1000]))
