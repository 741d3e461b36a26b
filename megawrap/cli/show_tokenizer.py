"""Tokenizers for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from megawrap.cli.console import console
from megawrap.errors import Finding, errors

if TYPE_CHECKING:
    from megawrap.preprocess.golden import Family
    from megawrap.preprocess.golden.diff import Comparison


def checked(family: Family, facts: Mapping[str, Any], findings: Sequence[Finding]) -> None:
    """Print what was compared with what, and whether it agrees; the findings are printed by themselves."""
    terminal = console()
    if "text" not in facts:
        end = "nothing" if facts["eod"] is None else f"id {facts['eod']}"
        line = f"{facts['type']}, {facts['engine']}: {facts['vocab_size']:,} ids, documents end with {end}"
        terminal.print(line, soft_wrap=True)
    if errors(findings):
        return
    what = f"{facts['text']!r}" if "text" in facts else f"all {len(family.cases)} texts, number of ids, special tokens"
    terminal.print(Text.assemble(("agrees", "bold green"), f" with {family.name}: {what}"), soft_wrap=True)


def compared(sides: Sequence[str], found: Comparison) -> None:
    """Print the two side by side, and the first differences."""
    terminal = console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("", "A", "B"):
        table.add_column(name, overflow="fold")
    table.add_row("tokenizer", *(Text(side, "cyan") for side in sides))
    table.add_row("engine", *found.engines)
    for name, values in (("ids", found.vocab_sizes), ("end of document", found.eods), ("tokens", found.tokens)):
        table.add_row(name, *("none" if value is None else f"{value:,}" for value in values))
    terminal.print(table)
    agree = found.texts - found.differing
    terminal.print(Text(f"{agree} of {found.texts} texts have the same ids", "yellow" if found.differing else "green"))
    for one in found.differences:
        terminal.print(Text(f"\n{_short(one.text)!r}", "bold"))
        for side, ids, pieces in zip("AB", one.ids, one.pieces, strict=True):
            words = "  ".join(f"{id}={piece!r}" for id, piece in zip(ids, pieces, strict=True))
            terminal.print(f"  {side}  from id {max(0, one.at - 1)}: {words or 'nothing more'}")


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
