"""The releases of Megatron-LM whose surface ships with megawrap, oldest first."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import orjson

from megawrap.errors import ConfigError, Finding, nearest
from megawrap.megatron.surface.argument import Argument
from megawrap.megatron.surface.surface import Surface

_DATA = Path(__file__).with_name("arguments.json")


@dataclasses.dataclass(frozen=True)
class Release:
    """A release: ``core`` is the version in its ``megatron/core/package_info.py``, ``fork`` is nvidia or rocm.
    ``checks`` is the version that it checks arguments like, where that is another: two branches of ROCm's fork call
    themselves 0.10.0rc0."""

    id: str
    core: str
    fork: str
    age: int
    checks: str | None = None

    @functools.cached_property
    def surface(self) -> Surface:
        """Its arguments."""
        rows = [Argument.from_row(row) for row in _load()["arguments"] if self.age in row["in"]]
        return Surface(rows)


@functools.cache
def releases() -> tuple[Release, ...]:
    """All releases, oldest first."""
    rows = _load()["releases"]
    return tuple(
        Release(row["id"], row["megatron_core"], row["fork"], age, row.get("checks")) for age, row in enumerate(rows)
    )


def release(name: str) -> Release:
    """The release called ``name``.

    Raises:
        ConfigError: when there is none; the message lists all.
    """
    found = next((one for one in releases() if one.id == name), None)
    if found is not None:
        return found
    known = [one.id for one in releases()]
    raise ConfigError(
        Finding(
            id="MW011",
            keys=("megatron.release",),
            message=f"{name!r} is not a release whose arguments megawrap knows: {', '.join(known)}",
            nearest=nearest(name, known),
        )
    )


def lifetime(flag: str, fork: str, choice: str | None = None) -> str | None:
    """When ``flag``, or one of the words that it takes, came and went in the releases of ``fork``, as a phrase;
    ``None`` when no release ever had it."""
    rows = [row for row in _load()["arguments"] if flag in row["flags"]]
    ages = {age for row in rows for age in row["in"] if choice is None or choice in (row.get("choices") or ())}
    name = flag if choice is None else f"{flag} {choice}"
    having = [one for one in releases() if one.age in ages]
    own = [one for one in having if one.fork == fork]
    if not own:
        return f"{name} exists only in {having[0].fork}'s fork, since {having[0].id}" if having else None
    newest = [one for one in releases() if one.fork == fork][-1]
    if own[-1] == newest:
        return f"{name} exists since {own[0].id}"
    return f"{name} existed from {own[0].id} until {own[-1].id}"


@functools.cache
def _load() -> dict[str, Any]:
    data: dict[str, Any] = orjson.loads(_DATA.read_bytes())
    return data
