"""The run directory: everything that is needed to know later what ran, with what, and how it ended."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from megawrap import __version__
from megawrap.errors import ConfigError, Finding
from megawrap.hardware.environment import hidden, masked
from megawrap.launchers import Command
from megawrap.plan import LaunchPlan
from megawrap.run.record import arguments_as_dict, plan_as_dict

_PACKAGES = ("megatron-core", "torch", "transformer-engine", "flash-attn", "numpy", "hydra-core", "omegaconf")


class RunDirectory:
    """Writes into one folder. Files appear whole; lines of ``metrics.jsonl`` and the logs are added as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> RunDirectory:
        """Make the folder.

        Raises:
            ConfigError: when it cannot be made or written, or holds a run already.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            probe = path / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as problem:
            where = problem.filename or path
            message = f"run.dir = {path} cannot be written: {problem.strerror} ({where})"
            raise ConfigError(Finding(id="MW701", keys=("run.dir",), message=message)) from problem
        if (path / "plan.json").exists():
            message = f"run.dir = {path} holds a run already: name another folder, or move this one away"
            raise ConfigError(Finding(id="MW702", keys=("run.dir",), message=message))
        return cls(path)

    def record(self, plan: LaunchPlan, commands: Sequence[Command]) -> None:
        """Write down what is about to run."""
        self.write("config.yaml", plan.composed.yaml(env=masked(plan.composed.config.env)))
        self.write("overrides.txt", "".join(f"{_masked_override(word)}\n" for word in plan.composed.overrides))
        self.write_json("arguments.json", arguments_as_dict(plan))
        self.write("argv.txt", "".join(f"{word}\n" for word in plan.compiled.argv()))
        ranks = {name: value for name, value in plan.environment.items() if value is not None}
        unset = sorted(name for name, value in plan.environment.items() if value is None)
        self.write_json("environment.json", {"ranks": _sorted(ranks), "unset": unset, "shell": _sorted(os.environ)})
        self.write_json("versions.json", _versions())
        self._record_git()
        self.write_json("plan.json", masked_plan(plan_as_dict(plan, commands)))

    def log(self, step: str, rank: int | None) -> Path:
        """The log of a rank of a step; of the launcher itself when ``rank`` is ``None``."""
        folder = self.path / "logs" / step
        folder.mkdir(parents=True, exist_ok=True)
        return folder / ("launcher.log" if rank is None else f"rank{rank}.log")

    def add_metrics(self, row: Mapping[str, Any]) -> None:
        """Add a line to ``metrics.jsonl``."""
        with (self.path / "metrics.jsonl").open("ab") as file:
            file.write(orjson.dumps({"time": time.time(), **row}) + b"\n")

    def write_json(self, name: str, value: Any) -> None:
        """Write ``value`` as indented JSON, whole."""
        self.write(name, orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")

    def write(self, name: str, text: str) -> None:
        """Write a file so that it is there whole or not at all."""
        target = self.path / name
        beside = target.with_name(f".{name}.partial")
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)

    def _record_git(self) -> None:
        commit = _git("rev-parse", "HEAD")
        if commit is None:
            return
        diff = _git("diff", "HEAD") or ""
        status = (_git("status", "--porcelain") or "").splitlines()
        self.write_json("git.json", {"commit": commit.strip(), "dirty": bool(status), "status": status})
        if diff:
            self.write("git.diff", diff)


def _sorted(environment: Mapping[str, str]) -> dict[str, str | None]:
    return masked(dict(sorted(environment.items())))


def masked_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with the values of secrets replaced in every environment."""
    steps = [{**step, "environment": masked(step["environment"])} for step in plan["steps"]]
    variables = [{**row, "value": hidden(row["name"], row["value"])} for row in plan["variables"]]
    return {**plan, "environment": masked(plan["environment"]), "variables": variables, "steps": steps}


def _masked_override(word: str) -> str:
    key, equals, value = word.partition("=")
    if not key.lstrip("+").startswith("env."):
        return word
    name = key.rpartition(".")[2]
    return f"{key}{equals}{hidden(name, value)}"


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"megawrap": __version__, "python": sys.version.split()[0], "host": platform.node()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return {**found, "kernel": platform.release()}


def _git(*words: str) -> str | None:
    """Output of git in the current folder; ``None`` without git or outside a work tree."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False, errors="replace")
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None
