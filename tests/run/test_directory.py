"""The run directory: what it holds, and what it refuses."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from megawrap.errors import ConfigError
from megawrap.launchers import commands
from megawrap.run.directory import RunDirectory

TINY = ("model=llama_tiny", "parallel=tp2", "cluster=cpu", "data=sample")


def test_record(planned, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "hush")
    secret = secrets.token_hex(8)  # a word would also stand in the difference to the last commit
    plan = planned(*TINY, f"env.HF_TOKEN={secret}", "optimizer.lr=1e-3")
    directory = RunDirectory.create(tmp_path / "run")
    directory.record(plan, commands(plan))
    written = {file.name for file in directory.path.iterdir()}
    assert {"config.yaml", "overrides.txt", "arguments.json", "argv.txt", "environment.json", "versions.json",
            "plan.json"} <= written  # fmt: skip
    for file in directory.path.iterdir():
        assert secret not in file.read_text(), file
        assert "hush" not in file.read_text(), file
    arguments = json.loads((directory.path / "arguments.json").read_text())
    assert arguments["lr"] == {"value": 0.001, "keys": ["optimizer.lr"], "origin": ["override optimizer.lr=1e-3"]}
    assert arguments["adam_beta1"]["value"] == 0.9
    assert arguments["moe_router_topk"] == {"value": 2, "keys": [], "origin": ["Megatron's default"]}
    assert (directory.path / "overrides.txt").read_text().splitlines()[0] == "model=llama_tiny"
    assert json.loads((directory.path / "versions.json").read_text())["megawrap"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError) as caught:
        RunDirectory.create(tmp_path / "file" / "run")
    assert caught.value.findings[0].message == (
        f"run.dir = {tmp_path}/file/run cannot be written: Not a directory ({tmp_path}/file/run)"
    )


def test_a_folder_that_cannot_be_written():
    """Even root cannot write under /proc."""
    with pytest.raises(ConfigError, match=r"run\.dir = /proc/megawrap cannot be written: "):
        RunDirectory.create(Path("/proc/megawrap"))


def test_a_folder_with_a_run_in_it_is_not_used_again(planned, tmp_path):
    plan = planned(*TINY)
    RunDirectory.create(tmp_path).record(plan, commands(plan))
    with pytest.raises(ConfigError, match="holds a run already"):
        RunDirectory.create(tmp_path)
