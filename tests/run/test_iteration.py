"""Iteration lines of several releases."""

from __future__ import annotations

import pytest

from megawrap.run.iteration import Iteration, parse_iteration

UPSTREAM = (
    " [2026-08-30 12:01:02.345678] iteration        3/      30 | consumed samples:           24 | "
    "elapsed time per iteration (ms): 500.0 | learning rate: 3.000000E-03 | global batch size:     8 | "
    "lm loss: 8.134667E+00 | loss scale: 1.0 | grad norm: 0.760 | number of skipped iterations:   0 | "
    "number of nan iterations:   0 |"
)
ROCM = (
    " [2026-02-09 12:01:02] iteration       12/   1000 | consumed samples:        12288 | "
    "elapsed time per iteration (ms): 7321.4 | mem usages: 0.6213 | throughput per GPU (TFLOP/s/GPU): 412.3 | "
    "learning rate: 1.000000E-04 | global batch size:  1024 | lm loss: 2.5E+00 | load_balancing_loss: 1.0E+00 | "
    "loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)


def test_upstream():
    assert parse_iteration(UPSTREAM) == Iteration(
        iteration=3, total=30, consumed_samples=24, elapsed_ms=500.0, learning_rate=3e-3, global_batch_size=8,
        lm_loss=8.134667, loss_scale=1.0, grad_norm=0.76, skipped_iterations=0, nan_iterations=0,
    )  # fmt: skip


def test_rocm():
    found = parse_iteration(ROCM)
    assert found is not None
    assert (found.iteration, found.tflops_per_gpu, found.lm_loss, found.grad_norm) == (12, 412.3, 2.5, None)


def test_a_nan_loss_is_missing_from_the_line():
    found = parse_iteration(UPSTREAM.replace("lm loss: 8.134667E+00 | ", ""))
    assert found is not None
    assert found.lm_loss is None


def test_tokens_per_second():
    found = parse_iteration(UPSTREAM)
    assert found is not None
    assert found.tokens_per_second(seq_length=256) == pytest.approx(8 * 256 / 0.5)


@pytest.mark.parametrize(
    "line", ["", "saving checkpoint at iteration      30 to x", "iteration 3 of 5", "iterations: 7/8"]
)
def test_other_lines(line):
    assert parse_iteration(line) is None
