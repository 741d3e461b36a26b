"""A comparison for people."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from megawrap.cli.console import console
from megawrap.cli.show_plan import human
from megawrap.importing.compare import NO_ARGUMENT, Comparison
from megawrap.importing.sides import MEGATRONS_DEFAULT, Side, Value


def show(found: Comparison) -> None:
    """Print what differs, and where each value was set."""
    terminal = console()
    for letter, side in (("A", found.a), ("B", found.b)):
        terminal.print(Text.assemble((f"{letter}  ", "bold cyan"), _head(side)), soft_wrap=True)
    if found.is_same:
        terminal.print(Text("the same arguments, environment and layout", "green"))
        return
    for table in (_arguments(found), _pairs("environment", found.environment), _pairs("layout", found.layout)):
        if table.row_count:
            terminal.print()
            terminal.print(table)


def _head(side: Side) -> str:
    size = f", {human(side.parameters)} parameters" if side.parameters else ""
    return f"{side.name} ({side.kind} for {side.megatron}{size})"


def _arguments(found: Comparison) -> Table:
    table = _table("argument")
    for row in found.arguments:
        table.add_row(row.argument, _value(row.a, found.a), _value(row.b, found.b))
    return table


def _value(value: Value, side: Side) -> Text:
    if value.origin == NO_ARGUMENT:
        return Text("-", "dim")
    # An example run says every value itself: that stands in the head.
    origin = {MEGATRONS_DEFAULT: "default", side.name: ""}.get(value.origin, value.origin)
    return Text.assemble(f"{value.value}", (f"  {origin}", "dim"))


def _pairs(title: str, pairs: Any) -> Table:
    table = _table(title)
    for name, (a, b) in pairs.items():
        table.add_row(name, *("-" if value is None else str(value) for value in (a, b)))
    return table


def _table(first: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in ("A", "B"):
        table.add_column(name, overflow="fold")
    return table
