"""plan --verify: the target itself has a say."""

from __future__ import annotations

import pytest

from megawrap.errors import errors
from megawrap.verify import verified

LEGAL = ("model=llama2_7b", "parallel=tp2", "cluster=mi300x")


@pytest.mark.train
def test_the_target_accepts_what_passes(planned):
    plan = planned(*LEGAL)
    assert verified(plan) == plan


@pytest.mark.train
def test_the_target_rejects_with_its_own_words(planned):
    plan = verified(planned(*LEGAL, "env.CUDA_DEVICE_MAX_CONNECTIONS='8'"))
    assert [finding.id for finding in errors(plan.findings)] == ["MW022", "MW112"]
    said = plan.findings[0].message
    assert "validate_args" in said
    assert "CUDA_DEVICE_MAX_CONNECTIONS" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["megatron=core-0.16.1"], "core-0.16.1 is not here to be asked"),
        pytest.param(["launcher.python=/nowhere/python"], "Megatron cannot be asked: /nowhere/python: No such file",
                     marks=pytest.mark.train),
    ],
)  # fmt: skip
def test_a_target_that_cannot_be_asked_is_a_warning(planned, words, message):
    plan = verified(planned(*LEGAL, *words))
    assert [finding.id for finding in plan.findings] == ["MW023"]
    assert plan.findings[0].message.startswith(message)
