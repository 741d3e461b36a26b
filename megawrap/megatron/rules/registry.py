"""What a rule is, the list of all, and the small vocabulary that rules are written in."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from megawrap.errors import Severity
from megawrap.megatron.effective import Effective

Broken = Callable[[Effective], Iterator["Violation"]]


@dataclasses.dataclass(frozen=True)
class Violation:
    """A broken rule. ``dests`` are the arguments concerned; ``nearest`` are ``(dest, value)`` that would be legal."""

    message: str
    dests: tuple[str, ...]
    nearest: tuple[tuple[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class Span:
    """Versions of megatron-core in one fork: from ``since`` on, and before ``until`` where that is given."""

    fork: str
    since: str = "0"
    until: str | None = None

    def holds(self, fork: str, core: tuple[int, ...]) -> bool:
        """Whether a Megatron is one of them."""
        return fork == self.fork and core >= numbers(self.since) and (self.until is None or core < numbers(self.until))

    def __str__(self) -> str:
        parts = [f">= {self.since}"] if self.since != "0" else []
        parts += [f"< {self.until}"] if self.until else []
        return f"{self.fork} {' '.join(parts)}".strip()


ALL = (Span("nvidia"), Span("rocm"))


def nvidia(since: str = "0", until: str | None = None) -> Span:
    """Releases of NVIDIA's Megatron-LM."""
    return Span("nvidia", since, until)


def rocm(since: str = "0", until: str | None = None) -> Span:
    """Releases of ROCm's fork. Its branches of 2024-10 and 2025-08 both say 0.10, that of 2026-02 says 0.15."""
    return Span("rocm", since, until)


@dataclasses.dataclass(frozen=True)
class Rule:
    """One rule: its condition, where Megatron checks it (or where it would die if it does not), and in which
    releases."""

    id: str
    says: str
    checked: str
    severity: Severity
    spans: tuple[Span, ...]
    condition: Broken

    def broken(self, effective: Effective) -> Iterator[Violation]:
        """What ``effective`` breaks; nothing in a release that the rule does not hold for."""
        if self.spans == ALL or any(span.holds(effective.fork, effective.core) for span in self.spans):
            yield from self.condition(effective)

    @property
    def holds_for(self) -> str:
        """For people: the releases."""
        return "all releases" if self.spans == ALL else ", ".join(map(str, self.spans))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"id": self.id, "says": self.says, "checked": self.checked, "severity": self.severity,
                "holds_for": self.holds_for}  # fmt: skip


RULES: dict[str, Rule] = {}


def rule(
    id: str, says: str, *, checked: str, severity: Severity = "error", spans: Sequence[Span] = ALL
) -> Callable[[Broken], Broken]:
    """Register a function that yields a violation when its rule is broken."""

    def register(condition: Broken) -> Broken:
        assert id not in RULES, id
        RULES[id] = Rule(id, says, checked, severity, tuple(spans), condition)
        return condition

    return register


ON, OFF, SET = "on", "off", "set"
Wanted = Mapping[str, Any]


def needs(
    id: str, says: str, when: Wanted, need: Wanted, *, checked: str = "validate_args", spans: Sequence[Span] = ALL
) -> None:
    """Register the rule that everything in ``need`` must hold where everything in ``when`` does. Both map an argument
    to ``ON`` (set and not false), ``OFF`` (unset or false), ``SET`` (0 too) or a tuple of values. An argument that the
    target lacks is off, and is never needed."""

    def condition(e: Effective) -> Iterator[Violation]:
        if not all(holds(e, dest, wanted) for dest, wanted in when.items()):
            return
        for dest, wanted in need.items():
            if dest in e.values and not holds(e, dest, wanted):
                names = [name for name in when if name != dest]
                yield Violation(
                    f"{' and '.join(_said(e, name) for name in names)} {'needs' if len(names) < 2 else 'need'} "
                    f"{_wish(dest, wanted)}, and it is {word(e.values[dest])}",
                    (dest, *names),
                    (*choices(dest, _legal(wanted, e.values[dest])), *choices(names[0], _off(e, names[0]))),
                )

    rule(id, says, checked=checked, spans=spans)(condition)


def holds(e: Effective, dest: str, wanted: Any) -> bool:
    """Whether an argument is as ``wanted`` says (see ``needs``)."""
    value = e.values.get(dest)
    if wanted == SET:
        return value is not None
    if wanted == ON:
        return value not in (None, False, [], 0, "")
    if wanted == OFF:
        return value in (None, False, [], 0, "")
    return value in wanted


def _said(e: Effective, dest: str) -> str:
    value = e.values.get(dest)
    return dest if value is True else f"{dest} = {word(value)}"


def _wish(dest: str, wanted: Any) -> str:
    if wanted in (ON, OFF):
        return f"{dest} {'set' if wanted == ON else 'unset'}"
    if len(wanted) > 8:
        return f"{dest} >= {wanted[0]}"
    return f"{dest} = {' or '.join(word(value) for value in wanted)}"


def _legal(wanted: Any, now: Any) -> list[Any]:
    """Values to propose. Of an argument that is no switch only its owner knows what to set."""
    if wanted == ON:
        return [True] if now is False else []
    if wanted == OFF:
        return [False if now is True else None]
    return [value for value in wanted if value is not None][:3]


def _off(e: Effective, dest: str) -> list[Any]:
    return [False] if e.values.get(dest) is True else []


def unshared(what: str, number: int, name: str, ranks: int) -> str:
    """For people: ``what``, of which there are ``number``, cannot be divided among ``name`` = ``ranks`` ranks."""
    return f"{what} cannot be shared by {name} = {ranks} ranks: {number} % {ranks} = {number % ranks}"


def word(value: Any) -> str:
    """A value as a user writes it."""
    return str(value).lower() if isinstance(value, bool) else "not set" if value is None else str(value)


def divisors(number: int, near: int, count: int = 12) -> list[int]:
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


@functools.cache
def numbers(version: str | None) -> tuple[int, ...]:
    """``"0.15.0rc8"`` → ``(0, 15, 0)``; empty for an unknown version."""
    return tuple(int(number) for number in re.findall(r"\d+", version or "")[:3])
