"""docs/environment.md is true: its commands say what it shows, its tables are the data."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from megawrap.cli import main
from megawrap.hardware.checks import checks
from megawrap.hardware.table import Gpu, gpus

DOC = (Path(__file__).parents[2] / "docs/environment.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^    \$ (.*)\n((?:    .*\n)+)", DOC, re.MULTILINE)


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_commands_say_what_is_shown(command, output, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    words = shlex.split(command)
    start = words.index("megawrap")
    for word in words[:start]:
        monkeypatch.setenv(*word.split("=", 1))
    main(words[start + 1 :])
    captured = capsys.readouterr()
    said = "\n".join(line.rstrip() for line in (captured.out + captured.err).splitlines())
    assert "\n".join(line.removeprefix("    ") for line in output.splitlines()) in said


def _row(one: Gpu) -> str:
    numbers = (one.memory_gb, one.hbm_gbs, one.bf16_tflops, one.fp8_tflops, one.fp4_tflops, one.intra_node_gbs)
    nics = f"{one.nics_per_node} x {one.nic_gbits:g} Gbit/s" if one.nics_per_node else "–"
    return " | ".join([one.id, one.name, *("–" if value is None else f"{value:g}" for value in numbers), nics])


def test_the_table_is_the_data():
    for one in gpus().values():
        assert f"| {_row(one)} |" in DOC


def test_every_finding_is_listed():
    for id, row in checks().items():
        assert f"| {id} | {row['severity']} | {row['says']} |" in DOC


@pytest.mark.parametrize("id", checks())
def test_explain(id, capsys):
    assert main(["explain", id]) == 0
    out = capsys.readouterr().out
    assert checks()[id]["says"] in out
    assert checks()[id]["severity"] in out
