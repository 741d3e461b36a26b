"""The table of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from megawrap.cli.console import console
from megawrap.cli.show_plan import human


def show(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print one line a model."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("model", "parameters", "layers", "hidden", "heads", "kv heads", "positions", "vocabulary"):
        table.add_column(name, justify="left" if name == "model" else "right")
    for row in rows:
        sizes = ("num_layers", "hidden_size", "num_attention_heads", "num_query_groups", "max_position_embeddings")
        shown = [f"{row[name]}" for name in (*sizes, "vocab_size")]
        table.add_row(Text(row["name"], "cyan"), human(row["parameters"]), *shown)
    console().print(table)
