"""The table of rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from megawrap.cli.console import console

_COLOURS = {"error": "red", "warning": "yellow"}


def show(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print one line a rule."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("id")
    table.add_column("what must be so", overflow="fold", ratio=3)
    table.add_column("checked by Megatron", style="dim", overflow="fold", ratio=2)
    table.add_column("holds for", style="dim", overflow="fold", ratio=2)
    for row in rows:
        table.add_row(Text(row["id"], _COLOURS[row["severity"]]), row["says"], row["checked"], row["holds_for"])
    console().print(table)
