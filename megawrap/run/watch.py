"""One step as its lines come: sort them by rank, understand those that say something, know at the end what failed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from megawrap.errors import Finding, MegawrapError, PreflightError, RunError
from megawrap.launchers import Command
from megawrap.run import process
from megawrap.run.failure import FailureReader
from megawrap.run.iteration import Iteration, parse_iteration
from megawrap.run.observer import Observer

_RANK_LINE = re.compile(r"^\[rank(\d+)\]:")


class Watch:
    """Fed with every line of one step of a launch, tells an observer."""

    def __init__(self, command: Command, observer: Observer) -> None:
        self.iterations: list[Iteration] = []
        self.last_event: Mapping[str, Any] = {}
        self._command = command
        self._observer = observer
        self._reader = FailureReader()
        self._told: list[Finding] = []

    def line(self, line: str) -> tuple[int | None, str]:
        """Take in a line; returns the rank that wrote it (``None``: the launcher) and its text."""
        found = _RANK_LINE.match(line)
        rank, text = (int(found[1]), line[found.end() :]) if found else (None, line)
        self._reader.feed(rank, text)
        self._observer.line(rank, text)
        if self._command.step.name != "train" and (event := _event(text)) is not None:
            told = [Finding(**_with_tuples(row)) for row in event.get("findings", ())]
            self._told += [finding for finding in told if finding not in self._told]
            self.last_event = event
            self._observer.event(event)
        elif (iteration := parse_iteration(text)) is not None:
            self.iterations.append(iteration)
            self._observer.iteration(iteration)
        return rank, text

    def error(self, exit_code: int, log: Callable[[int | None], Path] | None = None) -> MegawrapError:
        """What to raise for a step that ended with ``exit_code``: its own findings, or the rank that failed first."""
        kind = PreflightError if self._command.step.name == "preflight" else RunError
        return kind(self._told or [self._first_failure(exit_code, log)])

    def _first_failure(self, exit_code: int, log: Callable[[int | None], Path] | None) -> Finding:
        failure = self._reader.failure
        rank = failure.rank if failure else None
        where = f" on {failure.host}" if failure and failure.host else ""
        who = f"rank {rank}{where} {failure.what}" if failure else f"its launcher ended with exit code {exit_code}"
        lines = [f"the step {self._command.step.name} failed: {who}", *self._reader.last_lines(rank)]
        lines += [f"whole log: {log(rank)}"] if log else []
        return Finding(id="MW710", message="\n".join(lines))


def run_alone(command: Command, observer: Observer, *, grace_seconds: float, reads: bool = False) -> Mapping[str, Any]:
    """Run one command outside any run directory, with our standard input if it ``reads``; returns the last thing it
    reported.

    Raises:
        RunError: when it fails.
        Interrupted: after a signal, when it has ended.
    """
    watch = Watch(command, observer)
    observer.step_started(command)
    code = process.run(command.argv, command.environment, watch.line, grace_seconds=grace_seconds, reads=reads)
    observer.step_ended(command, code)
    if code != 0:
        raise watch.error(code)
    return watch.last_event


def _event(text: str) -> Mapping[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and "event" in value else None


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
