"""torchrun: one agent a machine starts the ranks and watches them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from megawrap.config.sections.place import Launcher
from megawrap.launchers.command import Command
from megawrap.plan import LaunchPlan, Step

# Each line of a rank carries its global rank, so that one stream serves as the log of all.
LINE_PREFIX = "[rank${rank}]:"


def commands(plan: LaunchPlan) -> list[Command]:
    """A command for each step of the plan, in order."""
    return [_command(plan, step) for step in plan.steps]


def one_process(step: Step, launcher: Launcher) -> Command:
    """A step that a single process runs, on the first machine."""
    python = launcher.python or sys.executable
    return Command(step, (python, *step.program), {"PYTHONUNBUFFERED": "1"}, tuple(launcher.hosts[:1]))


def _command(plan: LaunchPlan, step: Step) -> Command:
    launcher = plan.composed.config.launcher
    if step.ranks == "one":
        return one_process(step, launcher)
    agent = [launcher.python or sys.executable, "-m", "torch.distributed.run", *_words(plan, step)]
    environment = {**plan.environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": LINE_PREFIX}
    return Command(step, (*agent, *step.program), environment, tuple(launcher.hosts))


def _words(plan: LaunchPlan, step: Step) -> Iterator[str]:
    where = plan.machine
    yield from ("--nproc-per-node", str(where.processes_per_node))
    yield from _rendezvous(plan)
    log_dir = Path(plan.composed.config.run.dir or "runs") / "torchrun" / step.name
    yield from ("--tee", "3", "--log-dir", str(log_dir))


def _rendezvous(plan: LaunchPlan) -> Iterator[str]:
    if plan.machine.nodes == 1:
        # A free port of torchrun's own choice: several runs on one machine never meet.
        yield "--standalone"
        return
    launcher, run = plan.composed.config.launcher, plan.composed.config.run
    yield from ("--nnodes", str(plan.machine.nodes), "--rdzv-backend", "c10d", "--rdzv-id", run.name or "megawrap")
    if launcher.hosts:
        yield from ("--rdzv-endpoint", f"{launcher.hosts[0]}:{launcher.master_port}")
