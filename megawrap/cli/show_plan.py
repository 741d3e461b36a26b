"""The plan for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from megawrap.cli import render
from megawrap.cli.console import console
from megawrap.config.origins import DEFAULT
from megawrap.hardware.environment import hidden
from megawrap.launchers import Command
from megawrap.megatron.compile import Emission
from megawrap.megatron.rules.registry import word
from megawrap.plan import LaunchPlan


def show(plan: LaunchPlan, commands: Sequence[Command], *, everything: bool = False) -> None:
    """Print the plan: model, layout, arguments, environment, steps, warnings."""
    terminal = console()
    terminal.print(Panel(_head(plan), title=Text("plan", "bold"), border_style="cyan"))
    terminal.print(_arguments(plan, everything))
    if plan.effective.changes:
        terminal.print(_changes(plan))
    terminal.print(_environment(plan))
    terminal.print(_steps(commands))
    for finding in plan.findings:
        render.one(finding, terminal)


def human(count: float | None) -> str:
    """``6738415616`` → ``6.74 B``."""
    if count is None:
        return "unknown"
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= limit:
            return f"{count / limit:.3g} {unit}"
    return f"{count:g}"


def _head(plan: LaunchPlan) -> RenderableType:
    layout, train = plan.layout, plan.composed.config.train
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column()
    rows.add_row("model", _model(plan))
    sizes = {"TP": layout.tensor, "PP": layout.pipeline, "CP": layout.context, "EP": layout.expert, "DP": layout.data}
    shown = " x ".join(f"{name} {size}" for name, size in sizes.items() if size != 1) or "one rank"
    rows.add_row("layout", f"{shown} on {layout.world_size} ranks: {plan.machine.name}")
    if plan.machine.gpu:
        rows.add_row("GPU", plan.machine.gpu.summary)
    if train.global_batch_size and train.seq_length:
        tokens = train.global_batch_size * train.seq_length
        steps = f", {layout.micro_batches} micro-batches" if layout.micro_batches else ""
        rows.add_row("batch", f"{train.global_batch_size} x {train.seq_length} = {tokens:,} tokens a step{steps}")
    rows.add_row("Megatron", plan.target.name)
    rows.add_row("run", str(plan.composed.config.run.dir))
    return Group(rows)


def _model(plan: LaunchPlan) -> str:
    model, counted = plan.composed.config.model, plan.parameters
    exact = f" ({counted:,})" if counted else ""
    differs = f"; published: {model.parameters:,}" if counted and model.parameters not in (None, counted) else ""
    return f"{model.name}, {human(counted)} parameters{exact}{differs}"


def _arguments(plan: LaunchPlan, everything: bool) -> Table:
    table = _table("arguments", "set by")
    for one in plan.compiled.emissions:
        if one.words and (everything or not one.is_default):
            table.add_row(" ".join(one.words), _set_by(plan, one))
    return table


def _set_by(plan: LaunchPlan, one: Emission) -> str:
    places = dict.fromkeys(plan.composed.origins.of(*one.keys))
    return ", ".join(one.keys[0] if place == DEFAULT else place for place in places)


def _changes(plan: LaunchPlan) -> Table:
    table = _table("changed by Megatron", "because")
    for change in plan.effective.changes:
        before = "" if change.before is None else f"{word(change.before)} "
        table.add_row(f"{change.dest}: {before}-> {word(change.value)}", change.reason)
    return table


def _environment(plan: LaunchPlan) -> Table:
    table = _table("environment", "because")
    for name, variable in plan.variables.items():
        value = hidden(name, variable.value)
        table.add_row(f"{name}={value}" if variable.value is not None else f"unset {name}", variable.reason)
    return table


def _steps(commands: Sequence[Command]) -> Table:
    table = _table("steps", "command")
    for command in commands:
        words = list(command.argv)
        # The arguments of the training program stand in their own table above.
        shown = [*words[: words.index("--num-layers")], "..."] if "--num-layers" in words else words
        table.add_row(command.step.name, " ".join(shown))
    return table


def _table(first: str, second: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left", header_style="bold")
    table.add_column(first, overflow="fold", ratio=2)
    table.add_column(second, style="dim", overflow="fold", ratio=3)
    return table
