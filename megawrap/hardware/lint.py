"""Variables that do not do what whoever set them expects: read by nobody, renamed, contradicting, mistyped. Warnings
only: an environment may hold what concerns other programs."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from megawrap.errors import Finding
from megawrap.hardware.checks import finding
from megawrap.hardware.conditions import holds

_LINT = Path(__file__).with_name("environment_lint.json")
_KNOWN = Path(__file__).with_name("environment_known.json")
SHELL = "your shell"
# Close enough to be a slip of the finger. Of two real names, NCCL_IB_SL and NCCL_IB_TC for one, neither is judged.
_CLOSE_NAME, _CLOSE_FAMILY = 0.85, 0.7


@dataclasses.dataclass(frozen=True)
class _Row:
    id: str
    name: re.Pattern[str]
    value: re.Pattern[str] | None
    others: Mapping[str, re.Pattern[str]]
    differs: tuple[str, ...]
    when: Mapping[str, Any]
    says: str
    use: str


def lint(own: Mapping[str, str | None], ambient: Mapping[str, str], facts: Mapping[str, Any]) -> list[Finding]:
    """Warnings about the variables that the ranks would have from the configuration (``own``) and inherit from the
    shell (``ambient``). ``facts`` are those of the plan."""
    variables = {name: value for name, value in {**ambient, **own}.items() if value is not None}
    return [
        _finding(row_id, name, message, own)
        for name, value in sorted(variables.items())
        for row_id, message in (*_rows_about(name, value, variables, facts), *_mistyped(name))
    ]


def _finding(id: str, name: str, message: str, own: Mapping[str, str | None]) -> Finding:
    if name in own:
        return finding(id, f"env.{name}: {message}", (f"env.{name}",))
    return finding(id, f"{name} (from {SHELL}): {message}", (name,), origin=(SHELL,))


def _rows_about(
    name: str, value: str, variables: Mapping[str, str], facts: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    for row in _rows_named(name):
        if row.value and not row.value.fullmatch(value.strip()):
            continue
        others = [other for other in row.differs if other in variables and variables[other] != value]
        pairs = all(other in variables and wanted.fullmatch(variables[other]) for other, wanted in row.others.items())
        if pairs and (others or not row.differs) and holds(row.when, facts):
            said = row.says.format_map({**facts, "others": " and ".join(others)})
            yield row.id, f"{said}. Instead: {row.use}"


@functools.lru_cache(maxsize=4096)
def _mistyped(name: str) -> tuple[tuple[str, str], ...]:
    """A name close to one that a library reads, in a family of variables that we know all of."""
    if name in known() or _rows_named(name):
        return ()
    for group in _groups():
        if any(_belongs(name, family) for family in group["families"]):
            for other in difflib.get_close_matches(name, group["names"], n=1, cutoff=_CLOSE_NAME):
                return (("MW503", f"no library that megawrap knows reads it. Did you mean {other}?"),)
    return ()


def _belongs(name: str, family: str) -> bool:
    """Whether ``name`` begins as a family does, or a slip away from it: NCLL_DEBUG. Short ones are not guessed at:
    PIP_ is near to HIP_."""
    if name.startswith(family):
        return True
    start = name[: len(family)]
    is_guessable = len(family) > 4 and start.endswith("_") and start.count("_") == family.count("_")
    return is_guessable and difflib.SequenceMatcher(None, start, family).ratio() >= _CLOSE_FAMILY


@functools.cache
def known() -> frozenset[str]:
    """Every variable that a library is known to read."""
    return frozenset(name for group in _groups() for name in group["names"])


@functools.cache
def _groups() -> tuple[dict[str, Any], ...]:
    return tuple(orjson.loads(_KNOWN.read_bytes()))


@functools.cache
def _rows() -> tuple[_Row, ...]:
    rows: list[dict[str, Any]] = orjson.loads(_LINT.read_bytes())
    return tuple(_row(row) for row in rows)


@functools.lru_cache(maxsize=4096)
def _rows_named(name: str) -> tuple[_Row, ...]:
    return tuple(row for row in _rows() if row.name.fullmatch(name))


def _row(row: Mapping[str, Any]) -> _Row:
    patterns = {name: re.compile(value) for name, value in row.get("with", {}).items()}
    value = re.compile(row["value"], re.IGNORECASE) if "value" in row else None
    return _Row(row["id"], re.compile(row["name"]), value, patterns, tuple(row.get("differs", ())), row.get("when", {}),
                row["says"], row["use"])  # fmt: skip
