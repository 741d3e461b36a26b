"""The heart of the rules: what passes here, the real Megatron accepts. Long: ``make conformance``."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from conformance_run import MOST_OVER, draw, is_good, report, run, target_of
from conformance_singles import singles

from megawrap.megatron.oracle import Oracle

pytestmark = pytest.mark.train
COUNT = 400
STEP = 8
"""Of the single changes every eighth is made here."""
TREES = [tree for tree in os.environ.get("MEGAWRAP_CHECKOUTS", "").split(":") if tree]


@pytest.fixture(scope="module")
def oracle():
    with Oracle() as running:
        yield running


@pytest.mark.parametrize("kind", ["drawn", "single"])
def test_the_installed_megatron_agrees(oracle, kind):
    target = target_of(None)
    changed = itertools.islice(singles(target.surface), 0, None, STEP)
    judged = run(target, oracle, draw(target, 20261130, COUNT) if kind == "drawn" else changed)
    assert any(one.verdict.is_accepted for one in judged)
    assert any(one.findings for one in judged)
    assert is_good(judged, most_over=MOST_OVER if kind == "drawn" else 1), report(judged)


@pytest.mark.skipif(not TREES, reason="MEGAWRAP_CHECKOUTS names no Megatron-LM checkouts")
@pytest.mark.parametrize("tree", TREES or [""])
def test_checkouts_agree(tree):
    target = target_of(tree)
    with Oracle(Path(tree)) as running:
        judged = run(target, running, draw(target, 20261130, COUNT))
    assert is_good(judged), report(judged)
