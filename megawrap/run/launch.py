"""Run a plan: its steps in order, each watched to its end, everything written down."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import orjson

from megawrap.errors import Finding, Interrupted, PreflightError, RunError
from megawrap.launchers import Command
from megawrap.plan import LaunchPlan
from megawrap.run import process
from megawrap.run.directory import RunDirectory
from megawrap.run.failure import FailureReader
from megawrap.run.iteration import Iteration, parse_iteration
from megawrap.run.observer import Observer

_RANK_LINE = re.compile(r"^\[rank(\d+)\]:")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a launch ended well."""

    directory: Path
    iterations: tuple[Iteration, ...]
    seconds: float


def launch(plan: LaunchPlan, commands: Sequence[Command], observer: Observer) -> Outcome:
    """Run ``commands`` of ``plan``, telling ``observer`` what happens.

    Raises:
        ConfigError: when the run directory cannot be used.
        RunError: when a step fails; names the first failing rank and its last lines.
        PreflightError: when the measurement of the network fails and it is required.
        Interrupted: after a signal, when every process has ended.
    """
    directory = RunDirectory.create(Path(plan.composed.config.run.dir or "."))
    directory.record(plan, commands)
    begin = time.monotonic()
    runner = _Runner(plan, directory, observer)
    try:
        for command in commands:
            runner.run(command)
    except Interrupted as interruption:
        _conclude(directory, 130, f"interrupted by {interruption.signal.name}")
        raise
    except (RunError, PreflightError) as failed:
        _conclude(directory, failed.exit_code, str(failed), failed.findings)
        raise
    _conclude(directory, 0, "done")
    return Outcome(directory.path, tuple(runner.iterations), time.monotonic() - begin)


def _conclude(directory: RunDirectory, code: int, why: str, findings: Sequence[Finding] = ()) -> None:
    rows = [finding.as_dict() for finding in findings]
    directory.write_json("result.json", {"exit_code": code, "reason": why, "findings": rows, "time": time.time()})


class _Runner:
    """Runs the steps of one plan and keeps what they report."""

    def __init__(self, plan: LaunchPlan, directory: RunDirectory, observer: Observer) -> None:
        self.iterations: list[Iteration] = []
        self._directory = directory
        self._observer = observer
        self._seq_length = plan.composed.config.train.seq_length or 0
        self._grace = plan.composed.config.monitor.grace_seconds

    def run(self, command: Command) -> None:
        """Run one step to its end."""
        reader = FailureReader()
        events: list[Mapping[str, Any]] = []
        self._observer.step_started(command)
        begin = time.monotonic()
        with self._logs(command.step.name) as logs:

            def on_line(line: str) -> None:
                rank, text = _split(line)
                logs.write(rank, text)
                reader.feed(rank, text)
                self._take(rank, text, events)

            code = process.run(command.argv, command.environment, on_line, grace_seconds=self._grace)
        self._observer.step_ended(command, code, time.monotonic() - begin)
        if code == 0:
            # All of it is in logs/ already, line by line; what torchrun kept of a failure stays to be looked at.
            shutil.rmtree(self._directory.path / "torchrun" / command.step.name, ignore_errors=True)
        elif command.step.stops:
            raise self._error(command, code, reader, events)

    def _take(self, rank: int | None, text: str, events: list[Mapping[str, Any]]) -> None:
        self._observer.line(rank, text)
        if text.startswith("{") and (event := _json_object(text)) is not None:
            events.append(event)
            self._observer.event(event)
        elif (iteration := parse_iteration(text)) is not None:
            self.iterations.append(iteration)
            row = dataclasses.asdict(iteration)
            row["tokens_per_second"] = iteration.tokens_per_second(self._seq_length)
            self._directory.add_metrics(row)
            self._observer.iteration(iteration)

    def _error(
        self, command: Command, code: int, reader: FailureReader, events: Sequence[Mapping[str, Any]]
    ) -> RunError | PreflightError:
        kind = PreflightError if command.step.name == "preflight" else RunError
        told = [Finding(**_as_tuples(row)) for event in events if event.get("event") == "error"
                for row in event.get("findings", ())]  # fmt: skip
        return kind(told or self._failed_rank(command, code, reader))

    def _failed_rank(self, command: Command, code: int, reader: FailureReader) -> Finding:
        failure = reader.failure
        rank = failure.rank if failure else None
        where = f" on {failure.host}" if failure and failure.host else ""
        who = f"rank {rank}{where} {failure.what}" if failure else f"the launcher ended with exit code {code}"
        last = "\n".join(reader.last_lines(rank))
        log = self._directory.log(command.step.name, rank)
        return Finding(id="MW710", message=f"the step {command.step.name} failed: {who}\n{last}\nwhole log: {log}")

    @contextlib.contextmanager
    def _logs(self, step: str) -> Iterator[_Logs]:
        logs = _Logs(self._directory, step)
        try:
            yield logs
        finally:
            logs.close()


class _Logs:
    """The open log files of a step, one a rank."""

    def __init__(self, directory: RunDirectory, step: str) -> None:
        self._directory = directory
        self._step = step
        self._files: dict[int | None, IO[str]] = {}

    def write(self, rank: int | None, text: str) -> None:
        if rank not in self._files:
            self._files[rank] = self._directory.log(self._step, rank).open("w", encoding="utf-8", buffering=1)
        self._files[rank].write(text + "\n")

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def _split(line: str) -> tuple[int | None, str]:
    found = _RANK_LINE.match(line)
    return (int(found[1]), line[found.end() :]) if found else (None, line)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and "event" in value else None


def _as_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
