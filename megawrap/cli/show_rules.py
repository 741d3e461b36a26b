"""The list of rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from megawrap.cli.console import console

_COLOURS = {"error": "red", "warning": "yellow"}


def show(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print a rule, and below it where and in which releases it is checked."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        more = f"{row['checked']} · {row['holds_for']}"
        table.add_row(Text(row["id"], _COLOURS[row["severity"]]), Text.assemble(f"{row['says']}\n", (more, "dim")))
    console().print(table)
