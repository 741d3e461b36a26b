"""Two sides of any kind, compared by effective argument."""

from __future__ import annotations

import json

import pytest
from importing_helpers import imported

from megawrap.cli import main
from megawrap.config.compose import compose
from megawrap.errors import ConfigError
from megawrap.importing.compare import compare
from megawrap.importing.examples import names
from megawrap.importing.sides import side
from megawrap.launchers import commands
from megawrap.plan import build
from megawrap.run.directory import RunDirectory
from megawrap.run.record import plan_as_dict

WORDS = "model=llama2_7b megatron=core-0.16.1 cluster=mi300x parallel=tp2"


@pytest.fixture
def folder(tmp_path):
    imported("torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --bf16").write(tmp_path / "a")
    return str(tmp_path / "a")


@pytest.fixture
def plan():
    return build(compose([*WORDS.split(), "env.HF_TOKEN=abc"]), ambient={})


def test_two_configurations():
    found = compare(side(WORDS), side(f"{WORDS} model.num_layers=16 train.seq_length=2048 cluster.nodes=2 env.A=1"))
    assert [(row.argument, row.a.value, row.b.value) for row in found.arguments] == [
        ("num_layers", 32, 16),
        ("seq_length", 4096, 2048),
    ]
    assert found.arguments[1].a.origin == "conf/base.yaml:4"
    assert found.arguments[1].b.origin == "override train.seq_length=2048"
    assert found.environment["A"] == (None, "1")
    assert found.layout["world_size"] == (8, 16)
    assert (found.a.parameters, found.b.parameters) == (6738415616, 3500281856)
    assert not found.is_same


def test_the_same_configuration_in_other_words():
    found = compare(side(WORDS), side(WORDS.replace("parallel=tp2", "parallel=tp2 parallel.pp=1 train.seed=1234")))
    assert found.is_same
    assert found.as_dict()["same"] is True


def test_a_run_directory_a_plan_and_their_configuration_are_the_same(tmp_path, plan):
    RunDirectory.create(tmp_path / "run").record(plan, commands(plan))
    (tmp_path / "plan.json").write_text(json.dumps(plan_as_dict(plan, commands(plan))), encoding="utf-8")
    sides = [side(f"{WORDS} env.HF_TOKEN=abc"), side(str(tmp_path / "run")), side(str(tmp_path / "plan.json"))]
    assert [one.kind for one in sides] == ["configuration", "run", "plan"]
    for other in sides[1:]:
        found = compare(sides[0], other)
        assert (found.arguments, found.environment, found.layout) == ((), {}, {})
        assert sides[0].parameters == other.parameters == 6738415616
        # The run directory, named after the time, says nothing of the run.
        assert other.arguments["save"].value == "${run.dir}/checkpoints"
    assert all(one.environment["HF_TOKEN"] == "***" for one in sides)


def test_a_folder_of_import_and_its_file(folder):
    found = compare(side(folder), side(f"{folder}/imported.yaml"))
    assert found.is_same
    assert found.a.arguments["num_layers"].origin.endswith("imported.yaml:9")


def test_releases_differ_by_what_is_not_a_default():
    found = compare(side(WORDS), side(WORDS.replace("core-0.16.1", "rocm-2026-02")))
    given = [row for row in found.arguments if not (row.a.is_default and row.b.is_default)]
    assert given == []


def test_an_example_run():
    found = compare(side("example:rocm25-llama2-7"), side("example:rocm25-llama2-13"))
    rows = {row.argument: (row.a.value, row.b.value) for row in found.arguments}
    assert (rows["num_layers"], rows["hidden_size"]) == ((32, 40), (4096, 5120))
    assert found.environment["MODEL_SIZE"] == ("7", "13")
    assert (found.a.parameters, found.b.parameters) == (6738415616, 13015864320)
    assert found.a.layout["world_size"] == 8


def test_a_configuration_that_cannot_be_launched_is_compared_and_warned_of(capsys):
    wrong = f"{WORDS} parallel.tp=3"
    found = compare(side(wrong), side(WORDS))
    assert [row.argument for row in found.arguments] == ["tensor_model_parallel_size"]
    assert found.findings
    assert all(one.severity == "warning" and wrong in one.message for one in found.findings)
    assert any("parallel.tp" in one.keys for one in found.findings)
    assert found.as_dict()["findings"] == [one.as_dict() for one in found.findings]
    assert main(["diff", wrong, WORDS]) == 0
    assert f"warning {found.findings[0].id}" in capsys.readouterr().err
    assert compare(side(WORDS), side(WORDS)).findings == ()


def test_an_example_run_that_is_not_there_names_those_that_are():
    with pytest.raises(ConfigError) as refused:
        side("example:foo")
    assert all(name in refused.value.findings[0].message for name in names())
    with pytest.raises(ConfigError) as refused:
        side("example:rocm26-lama3-8")
    assert refused.value.findings[0].nearest[0] == "example:rocm26-llama3-8"


def test_a_list_of_one_is_that_one():
    found = compare(side("example:rocm25-mixtral-8x7B"), side("example:rocm26-mixtral-8x7B"))
    assert found.b.arguments["moe_aux_loss_coeff"].value == [0.01]
    assert "moe_aux_loss_coeff" not in {row.argument for row in found.arguments}


def test_every_example_run_is_a_side():
    for name in names():
        one = side(f"example:{name}")
        assert one.layout["world_size"] == 8
        assert one.arguments["num_layers"].value > 0
        assert "***" not in one.environment.values()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("nothing", "nothing is neither overrides"),
        ("example:llama2", "there is no such example run"),
        ("{}/broken.json", "is not JSON"),
        ("{}/other.json", "is not a plan"),
        ("{}/run", "arguments.json cannot be read"),
    ],
)
def test_what_is_no_side(tmp_path, word, message):
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "other.json").write_text("[]", encoding="utf-8")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/plan.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        side(word.format(tmp_path))
