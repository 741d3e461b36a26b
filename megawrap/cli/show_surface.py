"""A surface for people: how it is known, and what is different from the nearest release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text

from megawrap.cli.console import console
from megawrap.megatron.surface import Argument, Difference, Target

_WAYS = {
    "bundled": "bundled: the data of {}",
    "fingerprint": "fingerprint: the files that make its parser are those of {}",
    "parser": "parser: its own parser was asked",
    "source": "source: its source was read, nothing of it was run",
}


def show(target: Target, found: Difference) -> None:
    """Print it."""
    terminal = console()
    release = target.release
    terminal.print(Text(target.name, "bold cyan"), soft_wrap=True)
    _line(terminal, "way", _WAYS[target.way].format(release.id))
    _line(terminal, "arguments", f"{len(target.surface)}; {release.id} has {len(release.surface)}")
    if target.correction:
        _block(terminal, "not taken", target.correction.reasons if target.way != "bundled" else ())
        _block(terminal, f"left open by the source, {len(target.correction.notes)}", target.correction.notes)
    _block(terminal, f"added, {len(found.added)}", map(_argument, found.added))
    _block(terminal, f"removed, {len(found.removed)}", (" ".join(one.flags) for one in found.removed))
    changes = (f"{one.flag}  {one.field}: {_value(one.before)} -> {_value(one.after)}" for one in found.changed)
    _block(terminal, f"changed, {len(found.changed)}", changes)
    if not (found.added or found.removed or found.changed):
        terminal.print(f"  no difference from {release.id}")


def _line(terminal: Console, name: str, text: str) -> None:
    terminal.print(Text.assemble((f"  {name:<11}", "bold"), text), soft_wrap=True)


def _block(terminal: Console, title: str, lines: Iterable[str]) -> None:
    shown = list(lines)
    if shown:
        terminal.print(Text(f"  {title}", "bold"))
    for line in shown:
        terminal.print(f"    {line}", soft_wrap=True)


def _argument(one: Argument) -> str:
    """Its flags, and what they take."""
    parts = [one.type or "text" if one.takes_value else one.action]
    if one.nargs is not None:
        parts.append(f"nargs {one.nargs}")
    if one.choices is not None:
        parts.append(f"one of {_value(list(one.choices))}")
    if one.takes_value:
        parts.append(f"default {_value(one.default)}")
    return f"{' '.join(one.flags)}  {', '.join(parts)}"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "|".join(map(str, value)) or "nothing"
    return "not set" if value is None else repr(value)
