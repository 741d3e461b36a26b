"""A launch as it goes, for people: one progress bar a step, the loss beside it."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich import filesize
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from megawrap.cli import render
from megawrap.cli.console import console
from megawrap.cli.show_plan import human
from megawrap.cli.show_summary import sparkline
from megawrap.errors import Finding
from megawrap.launchers import Command
from megawrap.rccl_tests.verdict import Verdict
from megawrap.run.iteration import Iteration
from megawrap.run.observer import Observer

_TITLES = {"preprocess": "tokenize", "preflight": "network", "train": "train"}


class Live(Observer):
    """Shows a bar for the step that runs and leaves a line behind for each that has ended."""

    def __init__(self, seq_length: int = 0) -> None:
        self._seq_length = seq_length
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[says]}"),
            console=console(),
        )
        self._task: TaskID | None = None
        self._losses: collections.deque[float] = collections.deque(maxlen=30)

    def __enter__(self) -> Live:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._progress.stop()

    def step_started(self, command: Command) -> None:
        """A bar for the step."""
        title = _TITLES[command.step.name]
        self._task = self._progress.add_task(title, total=None, count="", says="starting")

    def iteration(self, iteration: Iteration) -> None:
        """The bar of the training."""
        if iteration.lm_loss is not None:
            self._losses.append(iteration.lm_loss)
        loss = f"{iteration.lm_loss:.3f}" if iteration.lm_loss is not None else "[red]NaN[/red]"
        rate = human(iteration.tokens_per_second(self._seq_length))
        says = f"loss {loss} {sparkline(self._losses) if self._losses else ''} {rate} tokens/s"
        count = f"{iteration.iteration}/{iteration.total}"
        self._update(total=iteration.total, completed=iteration.iteration, count=count, says=says)

    def event(self, event: Mapping[str, Any]) -> None:
        """Progress of tokenizing, or a measured bandwidth."""
        if event["event"] == "start" and "engine" in event:
            self._progress.console.print(Text(f"encoding with {event['why']}", style="dim"))
            self._update(says="")
        elif event["event"] == "progress":
            self._tokenized(event)
        elif event["event"] == "done" and "tokens" in event:
            told = f"{event['documents']:,} documents, {event['tokens']:,} tokens"
            told += f", {sum(event['rejected'].values()):,} lines skipped" if event["rejected"] else ""
            self._update(says=f"{told}, {'already there' if event['reused'] else event['engine']}")
        elif event["event"] == "record":
            size, rate = human(event["bytes"]).replace(" ", ""), f"{event['busbw']:.2f} GB/s"
            self._update(says=f"{event['collective']} of {size}B between {event['ranks']} ranks: busbw {rate}")

    def _tokenized(self, event: Mapping[str, Any]) -> None:
        """How far, how fast, and how long still; the length of standard input is not known."""
        done, total = event["bytes"], event["total_bytes"]
        rate = (done - event["resumed_bytes"]) / event["seconds"] if event["seconds"] else 0.0
        says = f"{human(event['tokens'])} tokens, {filesize.decimal(int(rate))}/s"
        if not total:
            self._update(count=filesize.decimal(done), says=says)
            return
        if rate:
            says += f", {datetime.timedelta(seconds=round((total - done) / rate))} left"
        self._update(total=total, completed=done, count=f"{done / total:.0%}", says=says)

    def judged(self, verdict: Verdict) -> None:
        """What the measured bandwidth means."""
        peak = f"busbw {verdict.peak_busbw:.2f} GB/s, " if verdict.peak_busbw is not None else ""
        says = verdict.says if verdict.says.startswith(verdict.word) else f"{verdict.word}: {verdict.says}"
        self._update(says=f"{peak}{says}")

    def warned(self, findings: Sequence[Finding]) -> None:
        """Above the bars."""
        for finding in findings:
            render.one(finding, self._progress.console)

    def step_ended(self, command: Command, exit_code: int) -> None:
        """The bar is full, or stands where it failed."""
        if self._task is None:
            return
        task = self._progress.tasks[self._task]
        if exit_code == 0:
            total = task.total or 1
            self._progress.update(self._task, total=total, completed=total)
        else:
            self._update(says=f"[red]failed with exit code {exit_code}[/red]")
            self._progress.stop_task(self._task)

    def _update(self, **fields: Any) -> None:
        assert self._task is not None
        self._progress.update(self._task, **fields)
