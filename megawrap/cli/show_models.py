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

# Narrow enough, all together, for a terminal of 80 columns.
_COLUMNS = ("model", "params", "active", "layers", "hidden", "heads", "kv", "experts", "length", "vocab")


def show(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print one line a model, family by family, each from its oldest and smallest on."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name == "model" else "right")
    for family, models in itertools.groupby(sorted(rows, key=_order), key=lambda row: row["family"]):
        table.add_row(Text(family, "bold"))
        for row in models:
            table.add_row(Text(f"  {row['name']}", "cyan"), *_numbers(row))
    console().print(table)


def _order(row: Mapping[str, Any]) -> tuple[str, list[str], float]:
    """Family, then the digits of the generation as text (llama2, llama3, llama31), then size."""
    generation = re.findall(r"\d+", row["name"].split("_")[0])
    return row["family"], generation, row["parameters"] or 0


def _numbers(row: Mapping[str, Any]) -> list[str]:
    active = row["active_parameters"] if row["num_experts"] else None
    experts = f"{row['moe_router_topk']} of {row['num_experts']}" if row["num_experts"] else ""
    dimensions = [row["num_layers"], row["hidden_size"], row["num_attention_heads"], row["num_query_groups"]]
    shown = [human(row["parameters"]), human(active) if active else "", *dimensions, experts]
    return [f"{value}" for value in (*shown, row["max_position_embeddings"], row["vocab_size"])]
