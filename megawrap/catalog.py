"""Everything that a plan is checked for, by id: Megatron's rules, the hardware and environment, the files; and which of
it the user does not want to hear of."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from megawrap.errors import Finding, nearest
from megawrap.hardware.checks import checks, finding_of, read_checks
from megawrap.megatron.rules import RULES

_GUARDS = Path(__file__).with_name("guards.json")


@functools.cache
def catalog() -> dict[str, dict[str, Any]]:
    """Id → ``id``, ``says`` (what must be so), ``checked`` (where Megatron checks it, or where the run would die),
    ``severity`` and ``holds_for`` (releases), in order of the id."""
    rows = [*(rule.as_dict() for rule in RULES.values()), *checks().values(), *_guards().values()]
    assert len({row["id"] for row in rows}) == len(rows), "two checks with one id"
    return {row["id"]: row for row in sorted(rows, key=lambda row: row["id"])}


@functools.cache
def _guards() -> dict[str, dict[str, str]]:
    return read_checks(_GUARDS)


def finding(id: str, message: str, keys: tuple[str, ...], nearest: tuple[str, ...] = ()) -> Finding:
    """A finding of one of the checks in guards.json, with its severity."""
    return finding_of(_guards()[id], message, keys, nearest=nearest)


def heard(findings: Iterable[Finding], silence: Sequence[str]) -> tuple[Finding, ...]:
    """``findings`` without the warnings of the silenced ids, errors before warnings."""
    kept = (one for one in findings if one.severity == "error" or one.id not in silence)
    return tuple(sorted(kept, key=lambda one: (one.severity, one.id)))


def unfit_silence(silence: Sequence[str]) -> Iterator[Finding]:
    """What is wrong with a list of ids to silence: they must be of warnings."""
    for id in silence:
        severity = catalog()[id]["severity"] if id in catalog() else None
        if severity == "error":
            message = f"silence: {id} is an error, and errors cannot be silenced"
            yield Finding(id="MW021", keys=("silence",), message=message)
        elif severity is None:
            warnings = [known for known, row in catalog().items() if row["severity"] == "warning"]
            message = f"silence: {id} is no check"
            yield Finding(id="MW021", keys=("silence",), message=message, nearest=nearest(id, warnings))
