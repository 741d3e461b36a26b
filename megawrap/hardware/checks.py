"""What the findings about hardware and environment (MW5xx) look at: the words that ``explain`` prints."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import orjson

from megawrap.errors import Finding, Severity

_DATA = Path(__file__).with_name("checks.json")


@functools.cache
def checks() -> dict[str, dict[str, str]]:
    """The checks of hardware and environment, as ``read_checks`` gives them."""
    return read_checks(_DATA)


def read_checks(file: Path) -> dict[str, dict[str, str]]:
    """Id → what must be so (``says``), where it would show (``checked``), ``severity``, and ``holds_for``."""
    rows: list[dict[str, str]] = orjson.loads(file.read_bytes())
    return {row["id"]: {**row, "holds_for": "all releases"} for row in rows}


def finding_of(
    check: Mapping[str, str],
    message: str,
    keys: tuple[str, ...] = (),
    *,
    nearest: tuple[str, ...] = (),
    origin: tuple[str, ...] = (),
) -> Finding:
    """A finding of a check, with its id and severity."""
    severity: Severity = "error" if check["severity"] == "error" else "warning"
    return Finding(id=check["id"], message=message, severity=severity, keys=keys, nearest=nearest, origin=origin)


def finding(
    id: str, message: str, keys: tuple[str, ...] = (), *, nearest: tuple[str, ...] = (), origin: tuple[str, ...] = ()
) -> Finding:
    """A finding of one of these checks, with its severity."""
    return finding_of(checks()[id], message, keys, nearest=nearest, origin=origin)
