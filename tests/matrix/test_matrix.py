"""What is legal, of every model with every layout and number format in five releases, and a part of it as the real
Megatron takes it: the installed one, and the source trees of MEGAWRAP_CHECKOUTS."""

from __future__ import annotations

import difflib
import os
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from legality import RELEASES, SNAPSHOT, cell, changed, composed, matrix, names_of, refused_by, words_of
from legality_table import table

from megawrap.config.origins import Origins
from megawrap.errors import errors
from megawrap.megatron.oracle import Oracle
from megawrap.megatron.rules import RULES
from megawrap.plan import build

SAMPLE = 20
TREES = [None, *(one for one in os.environ.get("MEGAWRAP_CHECKOUTS", "").split(os.pathsep) if one)]
CELLS = int(os.environ.get("MEGAWRAP_MATRIX_CELLS", "2"))  # of each model, for each Megatron


@pytest.fixture(scope="module")
def made():
    return matrix()


@pytest.fixture
def found(made):
    return made[1]


def test_nothing_became_legal_or_illegal_unnoticed(found):
    before, now = SNAPSHOT.read_text(encoding="utf-8").splitlines(), table(found).splitlines()
    changes = list(difflib.unified_diff(before, now, SNAPSHOT.name, "now", n=0, lineterm=""))
    assert not changes, "\n".join([*changes, "", "meant so? python tests/matrix/legality.py --write"])


def test_every_model_has_a_layout_in_every_release_and_precision(found):
    """But for fp16 and fp32 with the grouped products of experts, which the older releases have in bf16 alone."""
    without = {}
    for row in found:
        for precision in {precision for _, precision in row.cells}:
            verdicts = [ids for (_, one), ids in row.cells.items() if one == precision]
            if all(verdicts):
                without.setdefault((row.release, precision), set()).update(set.intersection(*map(set, verdicts)))
    assert without == {(release, precision): {"MW818"} for release in ("core-0.14.0", "rocm-2026-02")
                       for precision in ("fp16", "fp32")}  # fmt: skip


def test_every_layout_serves_some_model_in_every_release(found):
    layouts = {layout for row in found for layout, _ in row.cells}
    legal = {(row.release, layout) for row in found for (layout, _), ids in row.cells.items() if not ids}
    assert {(release, layout) for release in RELEASES for layout in layouts} == legal


def test_put_together_as_hydra_would(made, monkeypatch):
    """A seeded sample: the same configuration, value for value, and the same verdict."""
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: None)
    all_, rng = made[0], random.Random(3)
    for _ in range(SAMPLE):
        model = rng.choice(sorted(names_of(all_, "model")))
        at = (model, *(rng.choice(all_.names(group, model)) for group in ("parallel", "precision", "megatron")))
        ours = cell(all_, *at)
        whole = composed(words_of(ours, *at))
        assert ours == whole, at
        assert refused_by(ours) == refused_by(whole), at


@pytest.mark.train
@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree or "installed")
def test_megatron_takes_what_is_legal_and_refuses_the_rest(made, tree, monkeypatch):
    """Some layouts and precisions of each model. What we refuse and Megatron takes dies later, as the rule says."""
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: None)
    source = {"source": "checkout", "path": tree} if tree else {"source": "installed", "path": None}
    all_, rng, wrong, accepted = made[0], random.Random(5), [], 0
    with Oracle(Path(tree) if tree else None) as oracle:
        for model in names_of(all_, "model"):
            for _ in range(CELLS):
                at = (model, rng.choice(all_.names("parallel", model)), rng.choice(all_.names("precision", model)))
                config = cell(all_, *at, RELEASES[0])
                config = changed(config, {f"megatron.{name}": value for name, value in source.items()})
                plan = build(SimpleNamespace(config=config, origins=Origins({})), ambient={})
                verdict = oracle.ask(plan.compiled.argv(), plan.layout.world_size, plan.environment)
                refused = [finding.id for finding in errors(plan.findings)]
                dies_later = any(id not in RULES or RULES[id].checked.startswith("nowhere") for id in refused)
                accepted += verdict.is_accepted
                if verdict.is_accepted == bool(refused) and not dies_later:
                    wrong.append((*at, refused, verdict.stage, verdict.message))
    assert wrong == []
    assert accepted > CELLS * len(names_of(all_, "model")) / 2
