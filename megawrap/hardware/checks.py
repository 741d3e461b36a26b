"""What the findings about hardware and environment (MW5xx) look at: the words that ``explain`` prints."""

from __future__ import annotations

import functools
from pathlib import Path

import orjson

from megawrap.errors import Finding, Severity

_DATA = Path(__file__).with_name("checks.json")


@functools.cache
def checks() -> dict[str, dict[str, str]]:
    """Id → what must be so (``says``), where it would show (``checked``), ``severity``, and ``holds_for``."""
    rows: list[dict[str, str]] = orjson.loads(_DATA.read_bytes())
    return {row["id"]: {**row, "holds_for": "all releases"} for row in rows}


def finding(
    id: str, message: str, keys: tuple[str, ...] = (), *, nearest: tuple[str, ...] = (), origin: tuple[str, ...] = ()
) -> Finding:
    """A finding of one of the checks, with its severity."""
    severity: Severity = "error" if checks()[id]["severity"] == "error" else "warning"
    return Finding(id=id, message=message, severity=severity, keys=keys, nearest=nearest, origin=origin)
