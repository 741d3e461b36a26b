"""Mistakes in files of one's own are findings with file, line and what would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from megawrap.cli import main
from megawrap.config.compose import compose
from megawrap.errors import ConfigError, Finding


def refused(folder: Path, text: str | bytes, *words: str) -> list[Finding]:
    (folder / "model").mkdir()
    file = folder / "model" / "mine.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as error:
        compose(["model=mine", *words], config_dir=str(folder))
    return list(error.value.findings)


def test_a_mistyped_key(tmp_path):
    (finding,) = refused(tmp_path, "name: mine\nnum_layer: 22\n")
    assert (finding.id, finding.keys) == ("MW002", ("model.num_layer",))
    assert finding.origin == (f"{tmp_path}/model/mine.yaml:2",)
    assert finding.nearest[0] == "num_layers"


def test_a_value_of_the_wrong_type(tmp_path):
    (finding,) = refused(tmp_path, "num_layers: twenty\n")
    assert (finding.id, finding.keys) == ("MW003", ("model.num_layers",))
    assert finding.origin == (f"{tmp_path}/model/mine.yaml:1",)
    assert "full_key" not in finding.message


def test_mistakes_of_files_and_words_together(tmp_path):
    text = "num_layers: twenty\nname: ${run.name}\nnum_layer: 3\n"
    found = refused(tmp_path, text, "parallel.tpp=2")
    assert [one.keys[0] for one in found] == ["parallel.tpp", "model.num_layers", "model.num_layer"]


def test_a_base_that_is_not_there(tmp_path):
    (finding,) = refused(tmp_path, "defaults: [llama9]\nnum_layers: 3\n")
    assert finding.id == "MW001"
    assert finding.message.startswith("model/mine.yaml: its defaults name model/llama9, which does not exist")
    assert "Config search path" not in finding.message
    assert any(name.startswith("llama") for name in finding.nearest)


def test_a_file_that_is_no_utf8(tmp_path, capsys):
    (finding,) = refused(tmp_path, b"name: mine\n# caf\xe9\nnum_layers: 3\n")
    assert finding.message.startswith(f"{tmp_path}/model/mine.yaml:2: the byte 0xe9 is not UTF-8")
    (tmp_path / "model" / "minor.yaml").write_text("num_layers: 3\n")
    assert main(["models", "--config-dir", str(tmp_path), "min"]) == 2
    captured = capsys.readouterr()
    assert "minor" in captured.out
    assert "mine.yaml:2: the byte 0xe9" in captured.err


def test_a_file_that_is_no_whole_configuration(capsys):
    file = Path(__file__).parents[2] / "conf/model/llama2_7b.yaml"
    assert main(["diff", str(file), "a"]) == 2
    assert "llama2_7b.yaml is no whole configuration" in capsys.readouterr().err


def test_a_list_is_asked_for_as_one():
    with pytest.raises(ConfigError) as error:
        compose(["silence=MW902"])
    (finding,) = error.value.findings
    assert finding.message == "silence = 'MW902': it takes a list, list[str]"
    assert finding.nearest == ("silence=[MW902]",)
