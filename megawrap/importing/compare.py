"""Two sides by effective argument, environment, size and layout."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from megawrap.errors import Finding
from megawrap.importing.sides import Side, Value

NO_ARGUMENT = "no such argument"
ABSENT = Value(None, NO_ARGUMENT, True)


@dataclasses.dataclass(frozen=True)
class Row:
    """An argument whose values differ."""

    argument: str
    a: Value
    b: Value


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What differs between two sides. ``environment`` and ``layout``: name → (a, b)."""

    a: Side
    b: Side
    arguments: tuple[Row, ...]
    environment: Mapping[str, tuple[str | None, str | None]]
    layout: Mapping[str, tuple[int | None, int | None]]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        sizes = self.a.parameters == self.b.parameters
        return sizes and not (self.arguments or self.environment or self.layout)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with either, each once."""
        return tuple(dict.fromkeys((*self.a.findings, *self.b.findings)))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, documented in docs/json.md."""
        return {
            "a": _described(self.a),
            "b": _described(self.b),
            "same": self.is_same,
            "arguments": [_row(row) for row in self.arguments],
            "environment": [{"variable": name, "a": a, "b": b} for name, (a, b) in self.environment.items()],
            "parameters": {"a": self.a.parameters, "b": self.b.parameters},
            "layout": [{"size": name, "a": a, "b": b} for name, (a, b) in self.layout.items()],
            "findings": [one.as_dict() for one in self.findings],
        }


def compare(a: Side, b: Side) -> Comparison:
    """Compare two sides. An argument that only one of two releases has counts where it is not at its default."""
    rows = [_arguments(dest, a, b) for dest in sorted({*a.arguments, *b.arguments})]
    environment = {
        name: (a.environment.get(name), b.environment.get(name))
        for name in sorted({*a.environment, *b.environment})
        if a.environment.get(name) != b.environment.get(name)
    }
    sizes = [name for name in a.layout if name in b.layout and a.layout[name] != b.layout[name]]
    layout = {name: (a.layout[name], b.layout[name]) for name in sizes}
    return Comparison(a, b, tuple(row for row in rows if row is not None), environment, layout)


def _arguments(dest: str, a: Side, b: Side) -> Row | None:
    first, second = a.arguments.get(dest, ABSENT), b.arguments.get(dest, ABSENT)
    if _plain(first.value) == _plain(second.value):
        return None
    is_untold = ABSENT in (first, second) and first.is_default and second.is_default
    return None if is_untold else Row(dest, first, second)


def _plain(value: Any) -> Any:
    """Newer releases take a list where older ones took one value."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _described(side: Side) -> dict[str, Any]:
    return {"name": side.name, "kind": side.kind, "megatron": side.megatron}


def _row(row: Row) -> dict[str, Any]:
    values = {"argument": row.argument, "a": row.a.value, "b": row.b.value}
    return {**values, "a_origin": row.a.origin, "b_origin": row.b.origin}
