"""Run a plan: its steps in order, each watched to its end, everything written down."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from megawrap.errors import Finding, Interrupted, MegawrapError
from megawrap.launchers import Command
from megawrap.plan import LaunchPlan
from megawrap.run import process
from megawrap.run.directory import RunDirectory
from megawrap.run.iteration import Iteration
from megawrap.run.observer import Observer
from megawrap.run.preflight import judged
from megawrap.run.watch import Watch


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a launch ended well; ``findings`` are warnings."""

    directory: Path
    iterations: tuple[Iteration, ...]
    findings: tuple[Finding, ...]
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
    iterations: list[Iteration] = []
    findings: list[Finding] = []
    try:
        for command in commands:
            trained, warnings = _run(plan, command, directory, observer)
            iterations += trained
            findings += warnings
    except Interrupted as interruption:
        _conclude(directory, interruption.exit_code, f"interrupted by {interruption.signal.name}")
        raise
    except MegawrapError as failed:
        _conclude(directory, failed.exit_code, str(failed), failed.findings)
        raise
    _conclude(directory, 0, "done", findings)
    return Outcome(directory.path, tuple(iterations), tuple(findings), time.monotonic() - begin)


def _run(
    plan: LaunchPlan, command: Command, directory: RunDirectory, observer: Observer
) -> tuple[list[Iteration], list[Finding]]:
    """Run one step to its end; what it trained, and what is worth a warning."""
    watch = Watch(command, observer)
    seq_length = plan.composed.config.train.seq_length or 0
    observer.step_started(command)
    with contextlib.closing(_Logs(directory, command.step.name)) as logs:

        def on_line(line: str) -> None:
            known = len(watch.iterations)
            logs.write(*watch.line(line))
            for iteration in watch.iterations[known:]:
                rate = iteration.tokens_per_second(seq_length)
                directory.add_metrics({**dataclasses.asdict(iteration), "tokens_per_second": rate})

        grace = plan.composed.config.monitor.grace_seconds
        code = process.run(command.argv, command.environment, on_line, grace_seconds=grace)
    observer.step_ended(command, code)
    if code == 0:
        # Everything is in logs/ already, line by line; what torchrun kept of a failure stays to be looked at.
        shutil.rmtree(directory.path / "torchrun" / command.step.name, ignore_errors=True)
    failed = watch.error(code, lambda rank: directory.log(command.step.name, rank)) if code != 0 else None
    if failed is not None and command.step.stops:
        raise failed
    findings = list(failed.findings) if failed else []
    if code == 0 and command.step.name == "preflight":
        verdict = judged(plan, directory.path / "preflight.json", stops=command.step.stops)
        observer.judged(verdict)
        findings = list(verdict.findings)
    warnings = [dataclasses.replace(finding, severity="warning") for finding in findings]
    observer.warned(warnings)
    return watch.iterations, warnings


def _conclude(directory: RunDirectory, code: int, why: str, findings: Sequence[Finding] = ()) -> None:
    rows = [finding.as_dict() for finding in findings]
    directory.write_json("result.json", {"exit_code": code, "reason": why, "findings": rows, "time": time.time()})


class _Logs:
    """The open log files of a step, one a rank."""

    def __init__(self, directory: RunDirectory, step: str) -> None:
        self._directory = directory
        self._step = step
        self._files: dict[int | None, IO[str]] = {}

    def write(self, rank: int | None, text: str) -> None:
        """Add a line."""
        if rank not in self._files:
            self._files[rank] = self._directory.log(self._step, rank).open("w", encoding="utf-8", buffering=1)
        self._files[rank].write(text + "\n")

    def close(self) -> None:
        """Close them all."""
        for file in self._files.values():
            file.close()
