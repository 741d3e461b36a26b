"""The environment of the ranks: profiles as data, what applies decided by the plan, your own value always winning."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

_DATA = Path(__file__).with_name("environment.json")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Variable:
    """One variable of the ranks. ``value`` ``None`` means that it is unset."""

    name: str
    value: str | None
    reason: str
    source: str


def environment(
    facts: Mapping[str, Any], own: Mapping[str, str | None], ambient: Mapping[str, str]
) -> dict[str, Variable]:
    """Name → variable, for a plan with ``facts`` (what a row's ``when`` asks for). ``own`` is the configuration's
    ``env``; it wins over the shell (``ambient``), which wins over the profile rows."""
    chosen = {row["name"]: _variable(row, facts, ambient) for row in _rows() if _applies(row, facts)}
    for name, value in own.items():
        chosen[name] = Variable(name, value, "yours", f"env.{name}")
    return chosen


def masked(variables: Mapping[str, str]) -> dict[str, str]:
    """``variables`` with the values of secrets replaced, fit to be written down."""
    return {name: "***" if _SECRET.search(name) else value for name, value in sorted(variables.items())}


def _applies(row: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    return all(facts.get(name) == value for name, value in row["when"].items())


def _variable(row: Mapping[str, Any], facts: Mapping[str, Any], ambient: Mapping[str, str]) -> Variable:
    name, value = row["name"], row["value"]
    value = value.format_map(facts) if value is not None else None
    if name in ambient and ambient[name] != value:
        return Variable(name, ambient[name], f"from your shell (the profile has {value or 'it unset'})", "shell")
    return Variable(name, value, row["reason"], row["source"])


@functools.cache
def _rows() -> tuple[dict[str, Any], ...]:
    return tuple(orjson.loads(_DATA.read_bytes()))
