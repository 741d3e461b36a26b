"""The plan as JSON: what ``plan --json`` prints and what a run directory keeps. Documented in docs/json.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from megawrap.launchers import Command
from megawrap.plan import LaunchPlan


def plan_as_dict(plan: LaunchPlan, commands: Sequence[Command], *, everything: bool = False) -> dict[str, Any]:
    """The documented object. With ``everything``, ``argv`` also says the target's defaults."""
    config = plan.composed.config
    return {
        "model": {"name": config.model.name, "parameters": plan.parameters},
        "layout": dataclasses.asdict(plan.layout),
        "megatron": plan.target.as_dict(),
        "machine": plan.machine.name,
        "gpu": dataclasses.asdict(plan.machine.gpu) if plan.machine.gpu else None,
        "argv": plan.compiled.argv(everything=everything),
        "changes": [dataclasses.asdict(change) for change in plan.effective.changes],
        "environment": plan.environment,
        "variables": [dataclasses.asdict(variable) for variable in plan.variables.values()],
        "steps": [command_as_dict(command) for command in commands],
        "findings": [finding.as_dict() for finding in plan.findings],
        "run_dir": config.run.dir,
    }


def command_as_dict(command: Command) -> dict[str, Any]:
    """A step: its name, words, environment and hosts."""
    return {
        "name": command.step.name,
        "argv": list(command.argv),
        "environment": dict(command.environment),
        "hosts": list(command.hosts),
    }


def arguments_as_dict(plan: LaunchPlan) -> dict[str, dict[str, Any]]:
    """Every effective argument: its value, whether the configuration or the target's default has it, and the origin."""
    set_here = {one.dest: one for one in plan.compiled.emissions}
    rows: dict[str, dict[str, Any]] = {}
    for dest, default in sorted(plan.target.surface.defaults().items()):
        one = set_here.get(dest)
        keys = one.keys if one else ()
        origin = list(plan.composed.origins.of(*keys)) if keys else ["Megatron's default"]
        rows[dest] = {"value": one.value if one else default, "keys": list(keys), "origin": origin}
    return rows
