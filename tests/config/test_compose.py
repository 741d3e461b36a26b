"""Composing: typed values, every mistake at once, and where each value was set."""

from __future__ import annotations

from pathlib import Path

import pytest

from megawrap.config import schema
from megawrap.config.compose import choices_of, compose, groups
from megawrap.config.sections.root import Config
from megawrap.errors import ConfigError


def test_every_choice_of_every_group_composes():
    """A file in conf/ that does not fit the schema is found here, not by a user."""
    for group, names in groups().items():
        for name in names:
            config = compose(["model=llama_tiny", f"{group}={name}"]).config
            assert isinstance(config, Config)


def test_groups_are_those_of_the_design():
    assert {"model", "parallel", "precision", "attention", "gemm", "recompute", "optimizer", "schedule", "data",
            "tokenizer", "cluster", "launcher", "megatron", "preflight", "monitor"} == set(groups())  # fmt: skip


def test_every_field_has_a_docstring():
    for field in schema.fields().values():
        assert len(field.doc) > 10, field.key


def test_origins_name_file_and_line_or_the_override(composed):
    found = composed("model=llama2_7b", "parallel=tp2", "optimizer.lr=1e-4", "megatron.args.moe_z_loss_coeff=1e-3")
    line = 1 + (Path(__file__).parents[2] / "conf/parallel/tp2.yaml").read_text().splitlines().index("tp: 2")
    assert found.origins.of("parallel.tp", "optimizer.lr", "model.kv_channels") == (
        f"conf/parallel/tp2.yaml:{line}",
        "override optimizer.lr=1e-4",
        "default",
    )
    assert found.origins.of("megatron.args.moe_z_loss_coeff") == ("override megatron.args.moe_z_loss_coeff=1e-3",)


def test_later_files_win_in_values_and_in_origins(composed):
    """llama_tiny sets the learning rate of its own; the origin must be the file that won."""
    found = composed("model=llama_tiny")
    assert found.config.optimizer.lr == 3e-3
    assert found.origins.of("optimizer.lr")[0].startswith("conf/model/llama_tiny.yaml:")


def test_own_folder_of_choices(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("name: mine\nnum_layers: 7\n")
    found = compose(["model=mine"], config_dir=str(tmp_path))
    assert found.config.model.num_layers == 7
    assert found.origins.of("model.num_layers") == (f"{tmp_path}/model/mine.yaml:2",)
    assert "mine" in choices_of("model", str(tmp_path))


def test_sequence_parallelism_follows_tensor_parallelism(composed):
    assert composed("model=llama_tiny", "parallel.tp=2").config.parallel.sp is True
    assert composed("model=llama_tiny").config.parallel.sp is False


def test_the_users_tokenizer_wins_over_that_of_the_sample(composed):
    assert composed("model=llama_tiny", "data=sample", "tokenizer=gpt2").config.tokenizer.type == "GPT2BPETokenizer"


def test_env_and_args_take_any_key_and_only_they(composed):
    found = composed("env.NCCL_DEBUG=INFO", "megatron.args.anything=3")
    assert found.config.env == {"NCCL_DEBUG": "INFO"}
    assert found.config.megatron.args == {"anything": 3}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            ["model=llama2_8b"],
            [("MW001", ("model=llama2_7b", "model=llama3_8b"), "model=llama2_8b: there is no such model. There are: ")],
            id="unknown group option",
        ),
        pytest.param(
            ["parallel.tpp=2"],
            [("MW002", ("parallel.tp",), "parallel.tpp: there is no such key. An argument of Megatron that no section "
              "has is set by megatron.args.tpp=VALUE")],
            id="unknown key",
        ),
        pytest.param(
            ["train.lr=1"],
            [("MW002", ("optimizer.lr",), "train.lr: there is no such key.")],
            id="right name in the wrong section",
        ),
        pytest.param(
            ["parallel.tp=two"],
            [("MW003", (), "parallel.tp = 'two': Value 'two' of type 'str' could not be converted to Integer; it takes "
              "int")],
            id="wrong type",
        ),
        pytest.param(
            ["precision.dtype=fp17"],
            [("MW004", ("fp16",), "precision.dtype = 'fp17' is not one of: bf16, fp16, fp32")],
            id="wrong word",
        ),
        pytest.param(["parallel.tp=["], [("MW005", (), "'parallel.tp=[' is not an override that Hydra can read")],
                     id="not an override"),
        pytest.param(
            ["model=nope", "parallel.tpp=2", "train.seed=x"],
            [("MW001", (), ""), ("MW002", (), ""), ("MW003", (), "")],
            id="all at once",
        ),
    ],
)  # fmt: skip
def test_mistakes(words, expected):
    with pytest.raises(ConfigError) as caught:
        compose(words)
    findings = caught.value.findings
    assert [finding.id for finding in findings] == [id for id, _, _ in expected]
    for finding, (_, near, message) in zip(findings, expected, strict=True):
        assert set(near) <= set(finding.nearest)
        assert finding.message.startswith(message)
        assert finding.origin, "a mistake in the overrides names its override"
