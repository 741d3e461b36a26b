"""The end of a run for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from megawrap.cli.console import console
from megawrap.cli.show_plan import human
from megawrap.run.summary import Summary

_BARS = "▁▂▃▄▅▆▇█"


def show_summary(summary: Summary) -> None:
    """Print loss curve, speed, and where everything is."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column(overflow="fold")
    if summary.losses:
        first, last = summary.losses[0], summary.losses[-1]
        rows.add_row("loss", f"{sparkline(summary.losses)}  {first:.3f} → {last:.3f}")
    rows.add_row("steps", f"{summary.iterations} in {summary.seconds:.0f} s, start-up included")
    if summary.tokens_per_second:
        rows.add_row("speed", f"{human(summary.tokens_per_second)} tokens/s")
    if summary.checkpoints:
        rows.add_row("checkpoint", str(summary.checkpoints))
    rows.add_row("run directory", str(summary.directory))
    console().print(Panel(rows, title=Text("done", "bold"), border_style="green"))


def sparkline(values: Iterable[float], width: int = 40) -> str:
    """``values`` as a line of bars, at most ``width`` wide."""
    values = list(values)
    step = max(1, -(-len(values) // width))
    means = [sum(part) / len(part) for start in range(0, len(values), step) if (part := values[start : start + step])]
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    return "".join(_BARS[round((value - low) / span * (len(_BARS) - 1))] for value in means)
