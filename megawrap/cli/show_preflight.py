"""The measured bandwidths for people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from megawrap.cli.console import console
from megawrap.cli.show_plan import human


def show(measured: Mapping[str, Any], directory: Path) -> None:
    """Print one line a size."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("collective", "size", "time (ms)", "algbw (GB/s)", "busbw (GB/s)", "wrong"):
        table.add_column(name, justify="left" if name == "collective" else "right")
    for row in measured["records"]:
        times = f"{row['seconds'] * 1e3:.2f}", f"{row['algbw']:.3f}", f"{row['busbw']:.3f}"
        table.add_row(row["collective"], f"{human(row['bytes'])}B", *times, str(row["wrong"]))
    terminal = console()
    terminal.print(table)
    terminal.print(str(directory / "preflight.json"), style="dim")
