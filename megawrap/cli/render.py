"""The one renderer of findings, and short notes. People read stderr; with --json stdout holds one object."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from megawrap.cli.console import console
from megawrap.config.origins import DEFAULT
from megawrap.errors import Finding

_COLOURS = {"error": "bold red", "warning": "bold yellow"}


def findings(found: Sequence[Finding], *, as_json: bool) -> None:
    """Print findings: as a JSON object on stdout, or for people on stderr."""
    if as_json:
        rows = [finding.as_dict() for finding in found]
        sys.stdout.write(orjson.dumps({"findings": rows}, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    terminal = console(stderr=True)
    for finding in found:
        one(finding, terminal)


def one(finding: Finding, console: Console) -> None:
    """Print one finding for people: what, where each key was set, and what would do."""
    lines = [
        Text.assemble((finding.severity, _COLOURS[finding.severity]), (f" {finding.id}  ", "dim"), finding.message)
    ]
    for key, origin in dict(zip(finding.keys, finding.origin, strict=False)).items():
        lines.append(Text(f"    {key}: {'not set' if origin == DEFAULT else f'set by {origin}'}", "dim"))
    if finding.nearest:
        lines.append(Text.assemble(("    try: ", "green"), "  or  ".join(finding.nearest)))
    for line in lines:
        console.print(line, soft_wrap=True)


def note(text: str) -> None:
    """A line for people."""
    console(stderr=True).print(text, soft_wrap=True)


def explained(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print what ``explain`` found."""
    terminal = console()
    for row in rows:
        _print_rule(row, terminal) if "rule" in row else _print_key(row, terminal)


def _print_rule(row: Mapping[str, Any], console: Console) -> None:
    console.print(Text.assemble((row["rule"], "bold cyan"), f"  {row['says']}"))
    lines = [f"checked by Megatron: {row['checked']}", f"severity: {row['severity']}", f"holds for: {row['holds_for']}"]
    console.print(Padding(Text("\n".join(lines), "dim"), (0, 0, 0, 4)))


def _print_key(row: Mapping[str, Any], console: Console) -> None:
    console.print(Text.assemble((row["key"], "bold cyan"), f"  {row['means']}"))
    lines = [f"value: {row['value']!r}  ({', '.join(row['origin'])})", f"type: {row['type']}"]
    if row["argument"]:
        lines.append(f"Megatron: {row['argument']}, default {row['megatron_default']!r}")
    if row["choices"]:
        lines.append(f"choices: {', '.join(row['choices'])}")
    console.print(Padding(Text("\n".join(lines), "dim"), (0, 0, 0, 4)))
