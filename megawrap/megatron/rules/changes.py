"""MW9xx: what Megatron changes without being asked. Warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.parallel import TP
from megawrap.megatron.rules.registry import Violation, choices, nvidia, rule, word

OWN_RULE = ("sequence_parallel",)
"""Changes that another rule explains."""


@rule("MW901", "a value of yours stays as it is", checked="validate_args changes it", severity="warning")
def yours(e: Effective) -> Iterator[Violation]:
    for change in e.changes:
        if change.dest in e.given and change.dest not in OWN_RULE and change.before is not None:
            is_other_form = isinstance(change.before, list) and change.before == [change.value]
            if not is_other_form:
                said = f"from {word(change.before)} to {word(change.value)}: {change.reason}"
                nearest = choices(change.dest, [] if change.value is None else [change.value])
                yield Violation(f"Megatron changes {change.dest} {said}", (change.dest,), nearest)


@rule("MW902", "the vocabulary is a multiple of its step x TP", checked="nowhere: it is padded", severity="warning")
def padded(e: Effective) -> Iterator[Violation]:
    size, step = e.vocab_size, (e.make_vocab_size_divisible_by or 0) * e.layout.tensor
    if size and size > 0 and step and e.padded_vocab_size is None and size % step:
        whole = math.ceil(size / step) * step
        message = f"the vocabulary of {size} is padded to {whole}, a multiple of {step}: a checkpoint has that shape"
        yield Violation(message, ("make_vocab_size_divisible_by", TP))


@rule("MW903", "experts are split as you say", checked="validate_args sets it", severity="warning")
def expert_tensor(e: Effective) -> Iterator[Violation]:
    if e.num_experts and e.layout.tensor > 1 and e.given.get("expert_tensor_parallel_size") is None:
        message = f"expert_tensor_parallel_size is not set: each expert is split over TP = {e.layout.tensor} ranks too"
        yield Violation(message, ("expert_tensor_parallel_size",), choices("expert_tensor_parallel_size", [1]))


@rule("MW904", "the global batch is said", checked="validate_args sets it", severity="warning")
def batch(e: Effective) -> Iterator[Violation]:
    if e.given.get("global_batch_size") is None and e.global_batch_size and not e.step_batch_size_schedule:
        message = f"global_batch_size is not set: it becomes micro batch x DP = {e.global_batch_size}"
        yield Violation(message, ("global_batch_size",), choices("global_batch_size", [e.global_batch_size]))


@rule("MW905", "a growing batch grows", checked="nowhere: it is ignored", severity="warning", spans=(nvidia("0.18"),))
def ramp_up(e: Effective) -> Iterator[Violation]:
    if e.rampup_batch_size:
        message = "this release ignores rampup_batch_size: the batch is the global one from the start"
        yield Violation(message, ("rampup_batch_size",))


@rule("MW906", "data are shared out as you say", checked="validate_args sets it", severity="warning")
def split(e: Effective) -> Iterator[Violation]:
    if any(change.dest == "split" for change in e.changes):
        message = "split is not set: 3 % of the documents go to validation and 0.1 % to the test"
        yield Violation(message, ("split",), choices("split", ["990,9,1"]))
