"""The written folder: whole or not at all, and text stays text."""

from __future__ import annotations

import pytest
from importing_helpers import dialect, imported
from omegaconf import OmegaConf

from megawrap.config.compose import compose
from megawrap.errors import ConfigError
from megawrap.importing import Dialect, Word, import_command, read_command
from megawrap.importing.settle import literal


@pytest.mark.parametrize(
    "text",
    ["${A}", "a${A}b${B}", "\\${A}", "\\\\${A}", "$A", "a\\b", "${", "tail\\", "'\"#: {}", "1e5", "null", "ü\n x ", ""],
)
def test_text_comes_back_as_it_was(tmp_path, text):
    command = read_command([Word("--num-layers"), Word("2"), Word("--save"), Word(text)], "x", {"VARIABLE": text})
    one = import_command(command, dialect())
    one.write(tmp_path / "out")
    config = compose([], config_dir=str(tmp_path / "out"), config_name="imported").config
    assert (config.checkpoint.save, config.env["VARIABLE"]) == (text, text)
    assert OmegaConf.create({"x": literal([text])}).x[0] == text


def test_a_folder_with_a_name_that_breaks_quoting(weird_path):
    one = imported("--num-layers 2")
    following = one.write(weird_path / "a b")
    assert "'" in following
    assert compose([], config_dir=str(weird_path / "a b"), config_name="imported").config.model.num_layers == 2


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(ConfigError, match="the folder holds something else"):
            imported("--num-layers 2").write(tmp_path, force=force)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_what_was_imported_before_is_replaced_only_by_force(tmp_path):
    out = tmp_path / "out"
    imported("--num-layers 2").write(out)
    with pytest.raises(ConfigError, match="is there already") as refused:
        imported("--num-layers 4").write(out)
    assert refused.value.findings[0].nearest == ("--force",)
    assert "num_layers: 2" in (out / "imported.yaml").read_text()
    imported("--num-layers 4").write(out, force=True)
    assert "num_layers: 4" in (out / "imported.yaml").read_text()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_nothing_is_left_behind_when_writing_fails(tmp_path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ConfigError, match="cannot be written: No space left on device"):
        imported("--num-layers 2").write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_file_says_where_it_came_from_and_what_is_missing(tmp_path):
    imported("--num-layers 2 --nonsense 1").write(tmp_path / "out")
    lines = (tmp_path / "out" / "imported.yaml").read_text().splitlines()
    assert lines[0].startswith("# Imported from the command line.")
    assert lines[1].startswith("# Not placed: --nonsense 1: core-0.16.1 has no argument --nonsense")


def test_what_yaml_refuses_in_a_comment(tmp_path):
    words = [
        Word("--num-layers"),
        Word("2"),
        Word("--nonsense"),
        Word("a\x00\x1b\nb"),
        Word("--save"),
        Word("\x00\x07"),
    ]
    one = import_command(read_command(words, "x"), dialect())
    one.write(tmp_path / "out")
    config = compose([], config_dir=str(tmp_path / "out"), config_name="imported").config
    assert (config.model.num_layers, config.checkpoint.save) == (2, "\x00\x07")
    assert "--nonsense a?? b" in (tmp_path / "out/imported.yaml").read_text()


def test_overrides_that_import_does_not_take():
    command = read_command([Word("--num-layers"), Word("2")], "x")
    with pytest.raises(ConfigError) as refused:
        Dialect.of(["train.seed=3"])
    assert refused.value.findings[0].id == "MW035"
    one = import_command(command, Dialect.of(["megatron=core-0.16.1", "cluster=mi300x", "cluster.nodes=4"]))
    assert "cluster: mi300x" in one.text
    assert "nodes: 4" in one.text
    assert one.check() == []
