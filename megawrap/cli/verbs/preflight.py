"""Measure the bandwidth between the ranks of a plan, and nothing else."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from megawrap.cli.verbs import common
from megawrap.errors import ConfigError, Finding
from megawrap.launchers import commands

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation

HELP = "Measure the all-reduce bandwidth between the ranks of a plan."


def configure(parser: argparse.ArgumentParser) -> None:
    """``preflight`` has no options of its own."""


def run(invocation: Invocation) -> int:
    """Measure; exit code 3 when the network is not fit."""
    from megawrap.run.launch import launch
    from megawrap.run.observer import Observer
    from megawrap.run.ready import require_machine

    options = invocation.options
    plan = common.planned(options)
    common.refuse_errors(plan)
    found = [command for command in commands(plan) if command.step.name == "preflight"]
    if not found:
        message = "nothing to measure: the preflight is off, or the world has one rank"
        nearest = ("preflight=required",)
        raise ConfigError(Finding(id="MW401", keys=("preflight.mode",), message=message, nearest=nearest))
    require_machine(plan)
    directory = Path(plan.composed.config.run.dir or ".")
    if options.json:
        launch(plan, found, Observer())
        measured = orjson.loads((directory / "preflight.json").read_bytes())
        sys.stdout.write(orjson.dumps({"run_dir": str(directory), **measured, "findings": []}).decode() + "\n")
        return 0
    from megawrap.cli.live import Live
    from megawrap.cli.show_preflight import show

    with Live() as live:
        launch(plan, found, live)
    show(orjson.loads((directory / "preflight.json").read_bytes()), directory)
    return 0
