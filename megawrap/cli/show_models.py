"""The table of models."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from megawrap.cli.console import console
from megawrap.cli.show_plan import human

Row = Mapping[str, Any]

# Narrow enough, all together, for a terminal of 80 columns; the others need a wide one.
_COLUMNS = ("model", "params", "active", "layers", "hidden", "heads", "kv", "experts", "length", "vocab")
_WIDE = ("ffn", "rope base", "tied", "tokenizer")
_WIDE_TERMINAL = 116


def show(rows: Iterable[Row]) -> None:
    """Print one line a model, family by family, each from its oldest and smallest on."""
    terminal = console()
    is_wide = terminal.width >= _WIDE_TERMINAL
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in (*_COLUMNS, *(_WIDE if is_wide else ())):
        table.add_column(name, justify="left" if name in ("model", "tokenizer") else "right", no_wrap=True)
    for family, models in itertools.groupby(sorted(rows, key=_order), key=lambda row: row["family"]):
        table.add_row(Text(family, "bold"))
        for row in models:
            more = _more(row) if is_wide else []
            table.add_row(Text(f"  {row['name']}", "cyan"), *(_word(value) for value in (*_numbers(row), *more)))
    terminal.print(table)
    terminal.print(Text("params: without padding of the vocabulary; active: those that a token meets", "dim"))


def _order(row: Row) -> tuple[str, list[str], float]:
    """Family, then the digits of the generation as text (llama2, llama3, llama31), then size."""
    generation = re.findall(r"\d+", row["name"].split("_")[0])
    return row["family"], generation, row["parameters"] or 0


def _numbers(row: Row) -> list[Any]:
    experts = row["num_experts"]
    return [
        human(row["parameters"]),
        human(row["active_parameters"]) if experts else None,
        row["num_layers"],
        row["hidden_size"],
        row["num_attention_heads"],
        "MLA" if row["multi_latent_attention"] else row["num_query_groups"],
        f"{row['moe_router_topk']} of {experts}" if experts else None,
        row["max_position_embeddings"],
        row["vocab_size"],
    ]


def _more(row: Row) -> list[Any]:
    return [
        row["moe_ffn_hidden_size"] or row["ffn_hidden_size"],
        row["rotary_base"],
        "tied" if row["tied_embeddings"] else None,
        row["tokenizer"],
    ]


def _word(value: Any) -> str:
    return "" if value is None else str(value)
