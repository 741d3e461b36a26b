"""How one surface differs from another."""

from __future__ import annotations

import dataclasses
from typing import Any

from megawrap.megatron.surface.argument import Argument
from megawrap.megatron.surface.surface import Surface

_FIELDS = tuple(field.name for field in dataclasses.fields(Argument))


@dataclasses.dataclass(frozen=True)
class Change:
    """A field of one argument."""

    flag: str
    field: str
    before: Any
    after: Any


@dataclasses.dataclass(frozen=True)
class Difference:
    """From one surface to another. An argument is the same one when it shares a flag."""

    added: tuple[Argument, ...]
    removed: tuple[Argument, ...]
    changed: tuple[Change, ...]

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, documented in docs/json.md."""
        return {
            "added": [dataclasses.asdict(one) for one in self.added],
            "removed": [dataclasses.asdict(one) for one in self.removed],
            "changed": [dataclasses.asdict(one) for one in self.changed],
        }


def difference(before: Surface, after: Surface) -> Difference:
    """What ``after`` has, lacks and has otherwise."""
    changed = []
    for one, old in _pairs(before, after):
        for name in _FIELDS:
            was, now = getattr(old, name), getattr(one, name)
            if was != now:
                changed.append(Change(one.flag, name, was, now))
    return Difference(_only_in(after, before), _only_in(before, after), tuple(changed))


def _pairs(before: Surface, after: Surface) -> list[tuple[Argument, Argument]]:
    known = {flag: one for one in before.arguments for flag in one.flags}
    found = [(one, next((known[flag] for flag in one.flags if flag in known), None)) for one in after.arguments]
    return [(one, old) for one, old in found if old is not None]


def _only_in(surface: Surface, other: Surface) -> tuple[Argument, ...]:
    known = {flag for one in other.arguments for flag in one.flags}
    return tuple(one for one in surface.arguments if not known & set(one.flags))
