"""All rules over one configuration, as findings that name the keys and where they were set."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from megawrap.config import schema
from megawrap.config.origins import DEFAULT, Origins
from megawrap.errors import Finding
from megawrap.megatron.compile import Compiled
from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.registry import RULES, Rule, Violation, word

World = Callable[[Mapping[str, Any]], int]
"""Arguments, defaults included -> the world size that they would have."""
MOST_NEAREST = 3
"""How many values are proposed for an argument."""
FIRST = "MW100"
"""The rule without which the others cannot be asked."""
# Not arguments of Megatron: the world is made by the launcher.
_OUTSIDE = {"world_size": ("cluster.nodes", "cluster.gpus_per_node")}


def check(
    effective: Effective,
    compiled: Compiled,
    origins: Callable[[], Origins],
    world: World | None = None,
) -> list[Finding]:
    """Findings of every broken rule, errors before warnings. ``origins`` is only called when there is one. ``world``
    tells the world size that other arguments would have; the same when not given."""
    broken = _broken([RULES[FIRST]], effective) or _broken(RULES.values(), effective)
    fits = _Fitting(effective, frozenset(rule.id for rule, _ in broken), world)
    found = []
    for rule, violation in broken:
        is_worth_it = rule.severity == "error" and rule.id != FIRST
        nearest = fits.first(violation.nearest) if is_worth_it else violation.nearest
        found.append(_finding(rule, dataclasses.replace(violation, nearest=nearest), compiled, origins))
    return sorted(found, key=lambda finding: (finding.severity, finding.id))


class _Fitting:
    """Which values break no rule that was kept before."""

    def __init__(self, effective: Effective, known: frozenset[str], world: World | None) -> None:
        self._effective, self._known, self._world = effective, known, world
        self._fit: dict[tuple[str, str], bool] = {}

    def first(self, nearest: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
        """The first values for each argument."""
        fit: dict[str, list[Any]] = {}
        for dest, value in nearest:
            if len(fit.setdefault(dest, [])) < MOST_NEAREST and self._is_fit(dest, value):
                fit[dest].append(value)
        return tuple((dest, value) for dest, values in fit.items() for value in values)

    def _is_fit(self, dest: str, value: Any) -> bool:
        name = (dest, repr(value))
        if name not in self._fit:
            now, size = self._effective, self._effective.layout.world_size
            if self._world is not None:
                size = self._world({**now.defaults, **now.given, **({} if value is None else {dest: value})})
            healed = now.given_instead(dest, value, size)
            self._fit[name] = not any(_is_new(rule, healed, self._known) for rule in _error_rules())
        return self._fit[name]


@functools.cache
def _error_rules() -> tuple[Rule, ...]:
    """Rules of errors; those of parallel sizes, which are broken most easily, first."""
    return tuple(rule for id, rule in sorted(RULES.items()) if rule.severity == "error")


def _is_new(rule: Rule, healed: Effective, known: Collection[str]) -> bool:
    return rule.id not in known and any(True for _ in rule.broken(healed))


def _broken(rules: Iterable[Rule], effective: Effective) -> list[tuple[Rule, Violation]]:
    return [(rule, violation) for rule in rules for violation in rule.broken(effective)]


def _finding(rule: Rule, violation: Violation, compiled: Compiled, origins: Callable[[], Origins]) -> Finding:
    keys = tuple(key for dest in violation.dests for key in keys_of(dest, compiled))
    return Finding(
        id=rule.id,
        severity=rule.severity,
        keys=keys,
        message=violation.message,
        nearest=tuple(f"{keys_of(dest, compiled)[0]}={_word(value)}" for dest, value in violation.nearest),
        origin=tuple(_place(key, origin) for key, origin in zip(keys, origins().of(*keys), strict=True)),
    )


def _place(key: str, origin: str) -> str:
    """A variable that the configuration does not set is the shell's, or one that a profile sets or leaves unset."""
    return "the shell or a profile" if key.startswith("env.") and origin == DEFAULT else origin


def keys_of(dest: str, compiled: Compiled) -> tuple[str, ...]:
    """The keys that set ``dest``; where nothing does, the key that could. ``env.NAME`` is a variable."""
    if dest.startswith("env."):
        return (dest,)
    return compiled.keys_of(dest) or _OUTSIDE.get(dest) or tuple(_settable(dest))


def _settable(dest: str) -> Iterator[str]:
    flag = "--" + dest.replace("_", "-")
    known = next((field.key for field in schema.fields().values() if field.flag == flag), None)
    yield known or f"megatron.args.{dest}"


def _word(value: object) -> str:
    return "null" if value is None else word(value)
