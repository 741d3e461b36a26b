"""What a rule is, and the list of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from megawrap.errors import Severity
from megawrap.megatron.layout import Layout


@dataclasses.dataclass(frozen=True)
class Effective:
    """What Megatron will see: every parsed argument (``dest`` → value, defaults included) and where it runs."""

    values: Mapping[str, Any]
    layout: Layout
    fork: str
    core: tuple[int, ...]
    environment: Mapping[str, str | None]

    def __getattr__(self, dest: str) -> Any:
        return self.values.get(dest)


@dataclasses.dataclass(frozen=True)
class Violation:
    """A broken rule. ``dests`` are the arguments concerned; ``nearest`` are ``(dest, value)`` that would be legal."""

    message: str
    dests: tuple[str, ...]
    nearest: tuple[tuple[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class Rule:
    """One rule: its condition, and where Megatron checks it (or where it would die if it does not)."""

    id: str
    says: str
    checked: str
    severity: Severity
    broken: Callable[[Effective], Iterator[Violation]]


RULES: dict[str, Rule] = {}


def rule(
    id: str, says: str, *, checked: str, severity: Severity = "error"
) -> Callable[[Callable[[Effective], Iterator[Violation]]], Callable[[Effective], Iterator[Violation]]]:
    """Register a function that yields a violation when its rule is broken."""

    def register(broken: Callable[[Effective], Iterator[Violation]]) -> Callable[[Effective], Iterator[Violation]]:
        assert id not in RULES, id
        RULES[id] = Rule(id, says, checked, severity, broken)
        return broken

    return register


def divisors(number: int, near: int, count: int = 3) -> list[int]:
    """Divisors of ``number``, those closest to ``near`` first."""
    found = [one for one in range(1, number + 1) if number % one == 0]
    return sorted(found, key=lambda one: (abs(one - near), one))[:count]


def multiples(step: int, near: int, count: int = 2) -> list[int]:
    """Positive multiples of ``step`` around ``near``, the closest first."""
    base = near // step
    found = [step * factor for factor in range(max(1, base - 1), base + 3)]
    return sorted(found, key=lambda one: (abs(one - near), one))[:count]


def choices(dest: str, values: Sequence[Any]) -> tuple[tuple[str, Any], ...]:
    """``values`` for ``dest`` as the nearest legal ones of a violation."""
    return tuple((dest, value) for value in values)
