"""Runs that are killed: nothing half-done has a final name, and the next run goes on from there to the same bytes."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from preprocess_helpers import lines, names, written

from megawrap.errors import ConfigError, RunError
from megawrap.preprocess import engine, journal, manifest
from megawrap.preprocess.conversation import Conversation
from megawrap.preprocess.digest import Digest
from megawrap.preprocess.indexed.verify import verify
from megawrap.preprocess.pool import Pool
from megawrap.preprocess.settings import Settings, TokenizerSettings

NUMBERS = TokenizerSettings(type="NullTokenizer", vocab_size=1000)
DATA = lines([" ".join(str(n % 1000) for n in range(start, start + start % 97 + 1)) for start in range(4000)])
FILES = ["in.jsonl", "out_text_document.bin", "out_text_document.idx", "out_text_document.json"]


def cut_small(patch: pytest.MonkeyPatch) -> None:
    """Many chunks even for small inputs."""
    patch.setattr(engine, "LARGEST_CHUNK", 32768)
    patch.setattr(engine, "SMALLEST_CHUNK", 32768)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    cut_small(monkeypatch)


def job_in(folder: Path) -> Settings:
    (folder / "in.jsonl").write_bytes(DATA)
    return Settings(input=folder / "in.jsonl", output_prefix=str(folder / "out"), tokenizer=NUMBERS, append_eod=True)


@pytest.fixture
def job(settings) -> Settings:
    """25 chunks, cheap to encode."""
    return settings(DATA, tokenizer=NUMBERS, append_eod=True, resume=True)


@pytest.fixture(scope="module")
def complete(tmp_path_factory) -> tuple[bytes, bytes]:
    """What comes out undisturbed."""
    job = job_in(tmp_path_factory.mktemp("complete"))
    engine.run(job)
    return written(job.prefix("text"))


def in_another_process(work: Callable[[], object]) -> int:
    """Exit code of a process that does it: 0, 1 for an exception, or the signal that killed it, negative."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:  # noqa: BLE001 (nothing may get back into pytest)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def dies_after(steps: int, die: Callable[[], object]) -> Callable[..., None]:
    """Something to call at every step: it calls ``die`` at one of them."""
    left = iter(range(steps))

    def step(*_: object) -> None:
        if next(left, None) is None:
            die()

    return step


def before(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, step: Callable[..., None]) -> None:
    original = getattr(owner, name)

    def stepping(*args, **kwargs):
        step(name, *args)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, stepping)


def step_everywhere(monkeypatch: pytest.MonkeyPatch, step: Callable[..., None]) -> None:
    """At all that the parent does to files, and between its messages."""
    for owner, name in (
        (journal.Journal, "add"), (Pool, "order"), (Conversation, "_take"), (Digest, "result"),
        (engine, "write_index"), (Path, "write_bytes"), (Path, "rename"), (Path, "unlink"), (os, "fsync"),
        (engine, "_finish"),
    ):  # fmt: skip
        before(monkeypatch, owner, name, step)


@pytest.fixture(scope="module")
def steps_of_a_run(tmp_path_factory) -> list[bool]:
    """For each step of a run from nothing with ``resume``: whether it gives the index its name."""
    found: list[bool] = []
    job = dataclasses.replace(job_in(tmp_path_factory.mktemp("steps")), resume=True)
    with pytest.MonkeyPatch.context() as patch:
        cut_small(patch)
        step_everywhere(patch, lambda name, *args: found.append(name == "rename" and str(args[1]).endswith(".idx")))
        engine.run(job)
    return found


def nothing_or_all(job: Settings, complete: tuple[bytes, bytes]) -> bool:
    """Whether the output is there; it is whole then, or there is no index."""
    prefix = job.prefix("text")
    if Path(f"{prefix}.idx").exists():
        assert verify(prefix) == []
        assert written(prefix) == complete
        return True
    assert manifest.load(prefix) is None
    return False


# Negative ones are counted from the end, where files get their names.
@pytest.mark.parametrize("steps", [*range(0, 120, 5), *range(-26, 0)])
def test_the_parent_may_be_killed_at_any_point(job, monkeypatch, complete, steps_of_a_run, steps):
    at = range(len(steps_of_a_run))[steps]
    with monkeypatch.context() as patch:
        step_everywhere(patch, dies_after(at, lambda: os.kill(os.getpid(), signal.SIGKILL)))
        assert in_another_process(lambda: engine.run(job)) == -signal.SIGKILL
    assert nothing_or_all(job, complete) == (at > steps_of_a_run.index(True))
    engine.run(job)
    assert written(job.prefix("text")) == complete
    assert names(job.input.parent) == FILES


# Early enough that there is work left for it.
@pytest.mark.parametrize("steps", [0, 7, 14, 20])
def test_a_worker_may_be_killed_at_any_point(job, monkeypatch, complete, steps):
    job = dataclasses.replace(job, workers=2)
    pools = []
    with monkeypatch.context() as patch:
        original = Pool.__init__
        patch.setattr(Pool, "__init__", lambda self, *args: pools.append(self) or original(self, *args))
        kill = dies_after(steps, lambda: os.kill(pools[0]._processes[1].pid, signal.SIGKILL))
        before(patch, Conversation, "_take", kill)
        with pytest.raises(RunError, match=r"^worker 2 .* was killed by SIGKILL"):
            engine.run(job)
    assert not nothing_or_all(job, complete)
    engine.run(job)
    assert written(job.prefix("text")) == complete


def left_by_a_killed_run(job: Settings, monkeypatch: pytest.MonkeyPatch, steps: int = 90) -> Path:
    """The folder of a run that was killed when about half of it was done."""
    with monkeypatch.context() as patch:
        step_everywhere(patch, dies_after(steps, lambda: os.kill(os.getpid(), signal.SIGKILL)))
        assert in_another_process(lambda: engine.run(job)) == -signal.SIGKILL
    return job.input.parent / ".out.partial"


def resumed(job: Settings) -> int:
    """Bytes that a run took over from the one before."""
    reports = []
    engine.run(job, reports.append)
    return reports[-1].resumed_bytes


def test_what_is_done_is_not_done_again(job, monkeypatch, complete):
    left_by_a_killed_run(job, monkeypatch)
    assert resumed(job) > len(DATA) // 4
    assert written(job.prefix("text")) == complete


def test_the_number_of_workers_may_change(job, monkeypatch, complete):
    left_by_a_killed_run(job, monkeypatch)
    monkeypatch.setattr(engine, "LARGEST_CHUNK", 50_000)
    again = dataclasses.replace(job, workers=2)
    assert resumed(again) > len(DATA) // 4
    assert written(job.prefix("text")) == complete


@pytest.mark.parametrize("file", ["text.bin", "text.lengths", "text.ends", "journal.jsonl"])
@pytest.mark.parametrize("damage", ["cut", "zeroed"])
def test_what_a_power_failure_lost_is_done_again(job, monkeypatch, complete, file, damage):
    path = left_by_a_killed_run(job, monkeypatch) / file
    size = path.stat().st_size
    assert size > 100
    os.truncate(path, size * 2 // 3)
    if damage == "zeroed":
        os.truncate(path, size)
    assert 0 < resumed(job) < len(DATA)
    assert written(job.prefix("text")) == complete


def test_a_changed_input_begins_again(job, monkeypatch, complete):
    left_by_a_killed_run(job, monkeypatch)
    status = job.input.stat()
    job.input.write_bytes(DATA)
    os.utime(job.input, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert resumed(job) == 0
    assert written(job.prefix("text")) == complete


OTHERS = [{"append_eod": False}, {"tokenizer": TokenizerSettings(type="NullTokenizer", vocab_size=1001)}]


@pytest.mark.parametrize("change", OTHERS)
def test_other_settings_begin_again(job, monkeypatch, change):
    left_by_a_killed_run(job, monkeypatch)
    assert resumed(dataclasses.replace(job, **change)) == 0


def test_without_resume_nothing_is_taken_over(job, monkeypatch, complete):
    left_by_a_killed_run(job, monkeypatch)
    again = dataclasses.replace(job, resume=False)
    assert resumed(again) == 0
    assert written(job.prefix("text")) == complete


def test_chunks_with_skipped_lines_are_told_again(job, monkeypatch, settings):
    data = DATA + b"bad\n"
    data = b"worse\n" + data
    skipping = settings(data, tokenizer=NUMBERS, resume=True, workers=2, on_error="skip")
    left_by_a_killed_run(skipping, monkeypatch)
    assert resumed(skipping) > 0
    rejected = (job.input.parent / "out.rejected.jsonl").read_text().splitlines()
    assert [line.split('"content":')[1] for line in rejected] == ['"worse"}', '"bad"}']


def test_a_failed_run_can_be_resumed(job, monkeypatch, complete):
    with monkeypatch.context() as patch:
        before(patch, engine, "_finish", dies_after(0, lambda: (_ for _ in ()).throw(OSError(28, "No space left"))))
        with pytest.raises(RunError, match="cannot be written: No space left"):
            engine.run(job)
    assert names(job.input.parent) == [".out.partial", "in.jsonl"]
    assert resumed(job) == len(DATA)
    assert written(job.prefix("text")) == complete


def test_standard_input_cannot_be_resumed(job):
    again = dataclasses.replace(job, input=Path("-"))
    assert "--resume: standard input cannot be read a second time" in str(next(again.problems()).message)
    with pytest.raises(ConfigError):
        engine.run(again)
