"""All rules over one configuration, as findings that name the keys and where they were set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from megawrap.config import schema
from megawrap.config.origins import DEFAULT, Origins
from megawrap.errors import Finding
from megawrap.megatron.compile import Compiled
from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.registry import RULES, Rule, Violation

FIRST = "MW100"
"""The rule without which the others cannot be asked."""
# Not arguments of Megatron: the world is made by the launcher.
_OUTSIDE = {"world_size": ("cluster.nodes", "cluster.gpus_per_node")}


def check(effective: Effective, compiled: Compiled, origins: Callable[[], Origins]) -> list[Finding]:
    """Findings of every broken rule, errors before warnings. ``origins`` is only called when there is one."""
    broken = _broken([RULES[FIRST]], effective) or _broken(RULES.values(), effective)
    found = [_finding(rule, violation, compiled, origins) for rule, violation in broken]
    return sorted(found, key=lambda finding: (finding.severity, finding.id))


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
    return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)
