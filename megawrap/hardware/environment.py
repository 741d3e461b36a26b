"""The environment of the ranks: profiles as data, what applies decided by the plan, your own value always winning."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from megawrap.hardware.conditions import holds
from megawrap.hardware.lint import known

_DATA = Path(__file__).with_name("environment.json")
# A token, not TOKENIZER_MODEL or the number of tokens in a chunk.
_SECRET = re.compile(r"KEY|TOKEN(?![A-Z])|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
# Which GPUs a process sees is a matter of the machine it stands on, not of the run.
_OF_A_MACHINE = re.compile(r"\w+_VISIBLE_DEVICES")


@dataclasses.dataclass(frozen=True)
class Variable:
    """One variable of the ranks. ``value`` ``None`` means that it is unset. ``source`` says who has it so: a document,
    ``shell``, or the key of the configuration."""

    name: str
    value: str | None
    reason: str
    source: str


def environment(
    facts: Mapping[str, Any], own: Mapping[str, str | None], ambient: Mapping[str, str]
) -> dict[str, Variable]:
    """Name → variable, for a plan with ``facts`` (what a row's ``when`` asks for). ``own`` is the configuration's
    ``env``; it wins over the shell (``ambient``), which wins over the profile rows, of which a later one wins over an
    earlier. Variables of the shell that a library reads are listed too: the ranks inherit them."""
    chosen = {row["name"]: _profile(row, facts) for row in _rows() if holds(row["when"], facts)}
    for name, value in ambient.items():
        if name in chosen and chosen[name].value != value:
            chosen[name] = Variable(name, value, f"from your shell, which wins over {_said(chosen[name])}", "shell")
        elif name not in chosen and name in known() and not _OF_A_MACHINE.fullmatch(name):
            chosen[name] = Variable(name, value, "from your shell", "shell")
    for name, wanted in own.items():
        loser = f", which wins over {_said(chosen[name])}" if name in chosen and chosen[name].value != wanted else ""
        chosen[name] = Variable(name, wanted, f"yours{loser}", f"env.{name}")
    return chosen


def masked(variables: Mapping[str, str | None]) -> dict[str, str | None]:
    """``variables`` with the values of secrets replaced, fit to be written down."""
    return {name: hidden(name, value) for name, value in variables.items()}


def hidden(name: str, value: str | None) -> str | None:
    """The value of a variable, fit to be shown: not that of a secret."""
    return "***" if value is not None and is_secret(name) else value


def is_secret(name: str) -> bool:
    """Whether a variable of this name holds what nobody else may read."""
    return _SECRET.search(name) is not None


def _said(variable: Variable) -> str:
    """What loses, for people: ``1 of the profile``, ``4 of your shell``."""
    value = "unset" if variable.value is None else variable.value
    return f"{value} {'of your shell' if variable.source == 'shell' else 'of the profile'} ({variable.reason})"


def _profile(row: Mapping[str, Any], facts: Mapping[str, Any]) -> Variable:
    value = row["value"].format_map(facts) if row["value"] is not None else None
    return Variable(row["name"], value, row["reason"].format_map(facts), row["source"])


@functools.cache
def _rows() -> tuple[dict[str, Any], ...]:
    return tuple(orjson.loads(_DATA.read_bytes()))
