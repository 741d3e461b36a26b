"""docs/models.md: its table names every preset, its examples work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from megawrap.cli import main
from megawrap.config.compose import choices_of
from megawrap.config.models import with_model

PAGE = (Path(__file__).parents[2] / "docs/models.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_every_preset_is_in_the_table_with_its_tokenizer():
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]
    named = {name: re.findall(r"`(\w+)`", row[4]) for row in rows for name in re.findall(r"`(\w+)`", row[2])}
    assert set(named) == set(choices_of("model"))
    assert {name for name in named if with_model(name).model.tokenizer not in named[name]} == set()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    for text in EXAMPLES:
        name = re.search(r"^name: (\w+)", text, re.MULTILINE)[1]
        (tmp_path / "model" / f"{name}.yaml").write_text(text)
    return str(tmp_path)


def test_the_worked_example(folder, capsys):
    assert main(["models", "tinyllama", "llama3_8b", "--json", "--config-dir", folder]) == 0
    answer = json.loads(capsys.readouterr().out)
    counts = {row["name"]: row["parameters"] for row in answer["models"]}
    assert answer["findings"] == []
    assert counts["tinyllama"] == 1_100_048_384
    assert counts["llama3_8b_deep"] - counts["llama3_8b"] == 16 * (
        2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096
    )
    for word in ("model=tinyllama", "model=llama3_8b_deep"):
        assert main(["plan", word, "train.seq_length=2048", "--config-dir", folder, "--format", "argv"]) == 0
