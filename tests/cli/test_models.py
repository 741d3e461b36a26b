"""The list of models: ours, and yours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from megawrap.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def listed(capsys):
    def run(*words):
        code = main(["models", "--json", *map(str, words)])
        answer = json.loads(capsys.readouterr().out)
        return code, {row["name"]: row for row in answer.get("models", [])}, answer["findings"]

    return run


@pytest.fixture
def own(tmp_path):
    """A folder of models."""
    (tmp_path / "model").mkdir()

    def write(name, text):
        (tmp_path / "model" / f"{name}.yaml").write_text(text)
        return tmp_path

    return write


def test_every_key_is_documented(listed):
    code, rows, findings = listed()
    documented = (ROOT / "docs/json.md").read_text()
    assert (code, findings) == (0, [])
    assert {key for row in rows.values() for key in row if f"`{key}`" not in documented} == set()
    assert rows["deepseek_v2_lite"]["active_parameters"] < rows["deepseek_v2_lite"]["parameters"] == 15_706_484_224


def test_parts_of_names(listed):
    _, rows, _ = listed("qwen3_3", "405")
    assert set(rows) == {"qwen3_30b_a3b", "qwen3_32b", "llama31_405b"}
    code, _, findings = listed("llamma2_7b")
    assert code == 2
    assert findings[0]["nearest"][0] == "llama2_7b"


@pytest.mark.parametrize(("columns", "widest"), [(80, "vocab"), (130, "tokenizer")])
def test_the_table_fits(monkeypatch, capsys, columns, widest):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[-1] == widest
    assert len(lines) > 50
    assert max(map(len, lines)) <= columns
    assert not any("…" in line for line in lines)


SMALL = "num_layers: 2\nhidden_size: 64\nnum_attention_heads: 4\nvocab_size: 100\nposition_embedding_type: rope\n"


def test_yours(listed, own):
    """A file of dimensions, one that builds on ours, one with an argument of Megatron's."""
    own("mine", f"name: mine\n{SMALL}")
    own("longer", "defaults: [llama2_7b, _self_]\nname: longer\nnum_layers: 64\n")
    dimensions = SMALL.strip().replace("\n", ", ")
    folder = own(
        "sinks", f"# @package _global_\nmodel: {{{dimensions}}}\nmegatron: {{args: {{softmax_type: learnable}}}}\n"
    )
    code, rows, findings = listed("--config-dir", folder, "mine", "longer", "sinks", "llama2_7b")
    assert (code, set(rows)) == (0, {"mine", "longer", "sinks", "llama2_7b"})
    assert rows["longer"]["parameters"] > 1.9 * rows["llama2_7b"]["parameters"]
    assert rows["sinks"]["parameters"] - rows["mine"]["parameters"] == 2 * 4
    assert [finding["id"] for finding in findings] == ["MW018"], "longer still has the number of llama2_7b"


@pytest.mark.parametrize(
    ("text", "said"),
    [("num_layers: many\n", "num_layers"), ("num_layer: 2\n", "num_layer"), ("num_layers: [2\n", "broken.yaml")],
)
def test_a_wrong_file_does_not_hide_the_others(listed, own, text, said):
    code, rows, findings = listed("--config-dir", own("broken", text), "broken", "llama2")
    assert code == 2
    assert set(rows) == {"llama2_7b", "llama2_13b", "llama2_70b"}
    assert said in findings[0]["message"]


def test_a_wrong_number_is_said(listed, own):
    code, rows, findings = listed("--config-dir", own("mine", f"{SMALL}parameters: 1000\n"), "mine")
    assert code == 0
    assert findings[0]["id"] == "MW018"
    assert findings[0]["nearest"] == [f"model.parameters={rows['mine']['parameters']}"]


def test_a_plan_says_when_its_model_is_not_the_published_one(capsys):
    assert main(["plan", "model=llama2_7b", "model.num_layers=4", "megatron=core-0.19.0"]) == 0
    assert "published: 6,738,415,616" in capsys.readouterr().out
    assert main(["plan", "model=llama2_7b", "megatron=core-0.19.0"]) == 0
    assert "published" not in capsys.readouterr().out


def test_text_is_offered_the_models_own_tokenizer(capsys, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    words = ["data=jsonl", f"data.input={tmp_path}/a.jsonl", f"data.output_prefix={tmp_path}/a", "megatron=core-0.19.0"]
    assert main(["plan", "model=qwen3_8b", *words]) == 2
    assert "try: tokenizer=qwen3" in capsys.readouterr().err
