"""The help: one page for everything, one for each verb."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from megawrap.cli.console import console

EXAMPLES = (
    ("model=llama_tiny parallel=tp2 cluster=cpu data=sample", "train a tiny Llama on this machine's CPU"),
    ("plan model=llama3_70b parallel=tp8pp4 cluster=mi300x cluster.nodes=4", "what would run, and is it legal?"),
    ("explain parallel.sp", "what a key means and who set it"),
    ("preprocess data.input=corpus.jsonl data.output_prefix=corpus tokenizer=llama2 tokenizer.model=F", "tokenize"),
)
EXIT_CODES = (
    "0 done · 1 the run failed · 2 the configuration or command is wrong · 3 preflight failed · 4 does not fit · "
    "5 no resource to run on · 130 interrupted"
)


def show(parser: argparse.ArgumentParser | None, what: str) -> None:
    """Print the help of a verb (its ``parser``), or the page for everything."""
    terminal = console()
    if parser is not None:
        _show_verb(terminal, parser, what)
    else:
        _show_all(terminal)


def show_actions(verb: str, rows: list[tuple[str, str]]) -> None:
    """Print what a verb can do, for one that does nothing by itself."""
    terminal = console()
    terminal.print(Text.assemble((f"megawrap {verb}", "bold cyan"), " ACTION [OPTIONS]\n"))
    _section(terminal, "actions", rows)
    terminal.print(f"`megawrap {verb} ACTION --help` tells more of each.")


def _show_verb(console: Console, parser: argparse.ArgumentParser, what: str) -> None:
    console.print(Text.assemble((parser.prog, "bold cyan"), f" {parser.usage or '[KEY=VALUE ...]'} [OPTIONS]"))
    console.print(Padding(what, (0, 0, 1, 2)))
    table = _table()
    for action in parser._actions:
        if action.option_strings:
            choices = f" {'|'.join(map(str, action.choices))}" if action.choices else ""
            table.add_row(", ".join(action.option_strings) + choices, action.help or "")
    console.print(table)


def _show_all(console: Console) -> None:
    from megawrap.cli.verbs import VERBS
    from megawrap.config.compose import groups

    console.print(
        Text.assemble(("megawrap", "bold cyan"), "  one line of configuration into a Megatron-LM training run")
    )
    console.print(Text("\nmegawrap [VERB] [GROUP=CHOICE ...] [KEY=VALUE ...] [OPTIONS]\n"))
    _section(console, "verbs", [(name, verb.help) for name, verb in VERBS.items()])
    _section(console, "groups", [(name, ", ".join(choices)) for name, choices in groups().items()])
    _section(console, "examples", [(f"megawrap {words}", what) for words, what in EXAMPLES], stacked=True)
    console.print(Text.assemble(("exit codes  ", "bold"), EXIT_CODES))
    console.print(
        "\nOptions of every verb: --json, --help, --config-dir DIR, --config-name NAME. Hydra's --multirun, --cfg, "
        "--info and its plugins work as ever. `megawrap explain SECTION` prints every key of a section."
    )


def _section(console: Console, title: str, rows: list[tuple[str, str]], *, stacked: bool = False) -> None:
    console.print(Text(title, "bold"))
    table = _table()
    for name, text in rows:
        if stacked:
            table.add_row(Text.assemble(name, (f"\n  {text}", "not bold dim white")))
        else:
            table.add_row(name, text)
    console.print(table)
    console.print()


def _table() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", overflow="fold")
    table.add_column()
    return table
