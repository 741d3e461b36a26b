"""MW133, MW21x: the micro-batches of a step, and global batches that grow. Sources: num_microbatches_calculator and
schedules of Megatron-LM core_v0.14.0 and core_v0.19.0."""

from __future__ import annotations

import re
from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.parallel import PP
from megawrap.megatron.rules.registry import Violation, choices, multiples, nvidia, rocm, rule

SUFFIXES = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}

RAMP_UP = (nvidia(until="0.18"), rocm())
"""From 0.18 on NVIDIA's releases ignore it (MW905)."""


@rule("MW211", "a growing batch grows in whole steps", checked="num_microbatches_calculator", spans=RAMP_UP)
def ramp_up(e: Effective) -> Iterator[Violation]:
    ramp, key = e.rampup_batch_size, "rampup_batch_size"
    if not ramp:
        return
    if len(ramp) != 3:
        yield Violation(f"{key} takes three numbers (start, increment, samples), not {len(ramp)}", (key,))
        return
    start, increment, samples = (int(one) for one in ramp)
    batch, micro, data = e.global_batch_size, e.micro_batch_size, e.layout.data
    if not (batch and micro and data):
        return
    if start < 1 or increment < 1 or samples < 0 or start > batch or (batch - start) % increment:
        message = f"{key} {start} {increment} {samples} does not reach global_batch_size = {batch} in whole steps"
        yield Violation(message, (key, "global_batch_size"))
        return
    wrong = [one for one in range(start, batch + 1, increment) if one % (micro * data)]
    if wrong:
        message = f"{key} passes a batch of {wrong[0]}, which is not a multiple of {micro} x {data} = {micro * data}"
        yield Violation(message, (key, "micro_batch_size"))


@rule("MW133", "an interleaved schedule has whole groups of micro-batches", checked="nowhere: dies in the first step")
def interleaved(e: Effective) -> Iterator[Violation]:
    pipeline, step = e.layout.pipeline, (e.micro_batch_size or 1) * (e.layout.data or 1)
    if e.layout.virtual < 2 or pipeline < 2:
        return
    key = "microbatch_group_size_per_vp_stage"
    group = e.values.get(key) or pipeline
    if group < pipeline:
        yield Violation(f"{key} = {group} is less than PP = {pipeline}", (key, PP), choices(key, [pipeline]))
        return
    for dest in ("global_batch_size", *(("eval_global_batch_size",) if e.eval_iters else ())):
        batch = e.values.get(dest)
        if not batch or batch % step or not e.said(dest):
            continue
        count = batch // step
        if count < group or 0 < count % group < pipeline:
            yield Violation(
                f"{dest} = {batch} makes {count} micro-batches, and the interleaved schedule of PP = {pipeline} takes "
                f"groups of {group} with at least {pipeline} in the last",
                (dest, PP),
                choices(dest, multiples(group * step, batch)),
            )


@rule("MW218", "a growing batch is counted in samples", checked="validate_args", spans=RAMP_UP)
def ramp_up_in_samples(e: Effective) -> Iterator[Violation]:
    if e.rampup_batch_size and e.train_iters and not e.skip_train:
        yield Violation("rampup_batch_size takes train_samples, not train_iters", ("rampup_batch_size", "train_iters"))


@rule("MW217", "a batch that grows by steps starts at 0 and says each size once",
      checked="validate_args, num_microbatches_calculator")  # fmt: skip
def steps(e: Effective) -> Iterator[Violation]:
    key = "step_batch_size_schedule"
    if not e.values.get(key):
        return
    if e.given.get("global_batch_size") is not None:
        message = f"{key} says the batch, and global_batch_size says it too"
        yield Violation(message, ("global_batch_size", key), choices("global_batch_size", [None]))
    if e.decrease_batch_size_if_needed:
        message = f"{key} does not work with decrease_batch_size_if_needed"
        yield Violation(message, ("decrease_batch_size_if_needed", key),
                        choices("decrease_batch_size_if_needed", [False]))  # fmt: skip
    try:
        entries = _entries(str(e.values[key]))
    except ValueError as problem:
        yield Violation(f"{key}: {problem}; it is THRESHOLD:BATCH THRESHOLD:BATCH ..., such as 0:768 250B:1536", (key,))
        return
    thresholds = [threshold // (e.seq_length or 1) for threshold, _ in entries]
    if thresholds[0] != 0 or len(set(thresholds)) < len(thresholds):
        yield Violation(f"{key} starts at 0, and each later threshold is another number of sequences", (key,))
    step = (e.micro_batch_size or 1) * (e.layout.data or 1)
    for _, batch in entries:
        if batch < 1 or batch % step:
            message = f"{key}: a batch of {batch} is not a multiple of micro batch x DP = {step}"
            yield Violation(message, (key, "micro_batch_size"))


def _entries(schedule: str) -> list[tuple[int, int]]:
    """(threshold in tokens, batch in sequences) of a schedule, by threshold."""
    words = schedule.replace(",", " ").split()
    pairs = [word.split(":", 1) for word in words]
    wrong = next((word for word, pair in zip(words, pairs, strict=True) if len(pair) != 2), None)
    if wrong is not None or not pairs:
        raise ValueError(f"{wrong!r} has no threshold" if wrong else "it is empty")
    return sorted((_number(threshold), _number(batch)) for threshold, batch in pairs)


def _number(word: str) -> int:
    found = re.fullmatch(r"([-+0-9.E]+)([KMBT]?)", word.strip().upper())
    if found is None:
        raise ValueError(f"{word!r} is not a number")
    return int(float(found[1]) * SUFFIXES[found[2]])
