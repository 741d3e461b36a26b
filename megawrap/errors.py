"""Findings and the exceptions that carry them: data only, rendered in one place (``megawrap.cli.render``).

A finding says what is wrong, which keys it concerns, where they were set and the nearest valid values. Code below the
command line collects findings and raises them together, so that a user sees every error at once.
"""

from __future__ import annotations

import dataclasses
import difflib
import signal
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

Severity = Literal["error", "warning"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong, or worth knowing, about a configuration, a host or a run.

    ``id`` is stable (``MW001``); ``keys`` are configuration keys or Megatron arguments; ``nearest`` are valid values
    close to the one given, best first; ``origin`` tells for each key where its value was set.
    """

    id: str
    message: str
    severity: Severity = "error"
    keys: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, documented in docs/json.md."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in vars(self).items()}


class MegawrapError(ValueError):
    """A failure that a user can mend. It carries findings and the exit code of the command."""

    exit_code: ClassVar[int] = 2

    def __init__(self, findings: Finding | Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = (findings,) if isinstance(findings, Finding) else tuple(findings)
        assert self.findings, "an error needs at least one finding"
        super().__init__("\n".join(finding.message for finding in self.findings))


class ConfigError(MegawrapError):
    """The configuration or the command is wrong (exit code 2)."""


class RunError(MegawrapError):
    """A step of a run failed (exit code 1)."""

    exit_code = 1


class PreflightError(MegawrapError):
    """The network or a host is not fit to train on (exit code 3)."""

    exit_code = 3


class ResourceError(MegawrapError):
    """Nothing here can run the plan (exit code 5)."""

    exit_code = 5


class Interrupted(Exception):
    """The user, or the scheduler, asked us to stop with a signal."""

    exit_code: ClassVar[int] = 130

    def __init__(self, number: int) -> None:
        self.signal = signal.Signals(number)
        super().__init__(self.signal.name)


def nearest(word: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The ``count`` known words closest to a mistyped one, best first; substrings count as close."""
    words = sorted(set(known))
    close = difflib.get_close_matches(word, words, n=count, cutoff=0.6)
    contained = [other for other in words if len(word) > 2 and (word in other or other in word)]
    return tuple(dict.fromkeys([*close, *contained]))[:count]


def errors(findings: Sequence[Finding]) -> list[Finding]:
    """Only the findings that forbid going on."""
    return [finding for finding in findings if finding.severity == "error"]
