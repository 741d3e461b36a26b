"""What came of an import, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from megawrap.cli.console import console
from megawrap.importing import Difference, Imported, Unplaced


def show(imported: Imported, following: str | None, differences: Sequence[Difference] | None) -> None:
    """Print presets, what could not be placed, the result of the check, and what to do next."""
    terminal = console()
    terminal.print(_head(imported), soft_wrap=True)
    lost = [one for one in imported.unplaced if one.needed]
    _unplaced("not placed", lost, terminal)
    _unplaced("left out, and not needed", [one for one in imported.unplaced if not one.needed], terminal)
    if any(one.kind == "argument" for one in lost) and imported.arguments.having_all:
        releases = ", ".join(imported.arguments.having_all)
        terminal.print(Text.assemble(("every argument is known to: ", "green"), releases), soft_wrap=True)
    if differences is not None:
        _check(differences, terminal)
    if following is not None:
        terminal.print(Text.assemble(("\nnext: ", "bold"), following), soft_wrap=True)


def _head(imported: Imported) -> Text:
    given, keys = len(imported.arguments.given), len(imported.settled.keys)
    lines = [f"{given} arguments of {imported.target.name}, from {imported.command.source}"]
    for group, choice in imported.presets.items():
        count = imported.differences_of(group)
        lines.append(f"  {group}={choice}" + (f" with {count} difference{'s'[: count > 1]}" if count else ""))
    lines.append(f"  {keys} keys of sections, {len(imported.settled.args)} through megatron.args")
    return Text("\n".join(lines))


def _unplaced(title: str, rows: Iterable[Unplaced], terminal: Console) -> None:
    table = _table(title, "why")
    for one in rows:
        where = f"line {one.line}: " if one.line is not None else ""
        table.add_row(where + _short(one.words), _short(one.reason, 200))
    if table.row_count:
        terminal.print(table)


def _check(differences: Sequence[Difference], terminal: Console) -> None:
    if not differences:
        terminal.print(Text("it compiles back to the same arguments and environment", "green"))
        return
    changed = [one for one in differences if not one.is_lost]
    lost = len(differences) - len(changed)
    said = [f"{lost} not placed"] * bool(lost) + [f"{len(changed)} with another value"] * bool(changed)
    terminal.print(Text(f"it does not compile back to the same: {', '.join(said)}", "bold red"))
    table = _table("argument", "before", "after")
    for one in changed:
        table.add_row(_short(one.argument), _short(one.before), _short(one.after))
    if table.row_count:
        terminal.print(table)


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _short(value: Any, length: int = 80) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= length else f"{text[: length - 1]}…"
