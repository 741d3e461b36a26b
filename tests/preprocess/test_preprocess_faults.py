"""What no program can prevent: processes that are killed, disks that are full. Nothing half-done gets a final name."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from preprocess_helpers import ROOT, SP, command, lines, names, run_command

from megawrap.preprocess.indexed.verify import verify
from megawrap.preprocess.messages import Chunk, Encoded, Job, Sizes, Target, Write
from megawrap.preprocess.sample.make import CORPUS
from megawrap.preprocess.staging import Staging
from megawrap.preprocess.worker import Worker


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """An input that takes long enough to be disturbed."""
    file = tmp_path / "in.jsonl"
    file.write_bytes(CORPUS.read_bytes() * 60)
    return file


@contextmanager
def running(file: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The command at work on ``file`` with two workers, once the first progress was told; and the workers' ids."""
    words = command("--input", file, "--output-prefix", file.with_name("out"), "--workers", "2", "--progress", "json")
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            for line in process.stdout:
                if json.loads(line)["event"] == "progress":
                    break
            yield process, children(process.pid)
        finally:
            process.kill()


def children(pid: int) -> list[int]:
    """The processes that ``pid`` has started and not lost yet."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def gone(pid: int) -> bool:
    """Whether the process has ended, be it that nobody has taken notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def all_gone(pids: list[int]) -> bool:
    """Whether the processes have ended, after some patience."""
    deadline = time.monotonic() + 20
    while not all(map(gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return all(map(gone, pids))


def test_a_killed_worker_ends_the_run(large):
    with running(large) as (process, workers):
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert all_gone(workers)
    assert err.startswith("megawrap.preprocess: error: MW630 worker ")
    assert f"(process {workers[0]}) was killed by SIGKILL while it encoded bytes " in err
    assert err.endswith(f" of {large}; if nobody did, memory ran out\n")
    assert json.loads(out.splitlines()[-1])["findings"][0]["id"] == "MW630"
    assert names(large.parent) == ["in.jsonl"]


def test_a_killed_run_leaves_no_process_and_no_output(large):
    with running(large) as (process, workers):
        process.kill()
        process.wait()
        assert all_gone(workers)
    assert names(large.parent) == [".out.partial", "in.jsonl"]
    large.write_bytes(lines(["again"]))
    done = run_command("--input", large, "--output-prefix", large.with_name("out"))
    assert (done.returncode, done.stderr) == (0, "")
    files = ["in.jsonl", "out_text_document.bin", "out_text_document.idx", "out_text_document.json"]
    assert names(large.parent) == files


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2, 0.4, 0.8])
def test_killed_at_any_moment_there_is_nothing_or_a_complete_output(tmp_path, delay):
    prefix = tmp_path / "out"
    with subprocess.Popen(command("--input", CORPUS, "--output-prefix", prefix, "--workers", "2"), cwd=ROOT) as process:
        time.sleep(delay)
        workers = children(process.pid)
        process.kill()
    assert all_gone(workers)
    if Path(f"{prefix}_text_document.idx").exists():
        assert verify(f"{prefix}_text_document") == []
    else:
        assert not Path(f"{prefix}_text_document.json").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_cleans_up(large, number):
    with running(large) as (process, workers):
        os.killpg(process.pid, number)  # as the terminal does: to the workers too
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "megawrap.preprocess: interrupted; nothing was written\n"
    assert all_gone(workers)
    assert names(large.parent) == ["in.jsonl"]


def test_a_busy_worker_dies_with_its_parent():
    busy = "import sys, time; from megawrap.preprocess.worker import _die_with; "
    busy += "_die_with(int(sys.argv[1])); print('ready', flush=True); time.sleep(600)"
    parent = "import os, subprocess, sys; "
    parent += "subprocess.run([sys.executable, '-c', sys.argv[1], str(os.getpid())], check=False)"
    words = [sys.executable, "-c", parent, busy]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        workers = children(process.pid)
        process.kill()
    assert len(workers) == 1
    assert all_gone(workers)


def limit_file_size() -> None:
    """No file may grow beyond 100 kB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def test_a_write_that_fails_ends_the_run(tmp_path):
    words = ["--input", CORPUS, "--output-prefix", tmp_path / "out", "--workers", "2"]
    done = run_command(*words, preexec_fn=limit_file_size)
    message = f"MW622 {tmp_path}/out_text_document.bin cannot be written: File too large"
    assert (done.returncode, done.stderr) == (1, f"megawrap.preprocess: error: {message}\n")
    assert names(tmp_path) == []


def test_a_full_disk_is_told_by_the_worker(tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_bytes(lines(["some words"]))
    full = Path("/dev/full")
    target = Target("text", "out_text_document", full, full, full)
    worker = Worker(Job((file,), SP, None, "<u2", (target,), 1 << 30))
    chunk = Chunk(0, 0, 0, file.stat().st_size, 0)
    assert isinstance(worker.obey(chunk), Encoded)
    order = Write(chunk, (Sizes(),))
    with pytest.raises(OSError) as failed:
        worker.obey(order)
    finding = worker.blame(order, failed.value)
    assert (finding.id, finding.message) == (
        "MW622",
        "out_text_document.bin cannot be written: No space left on device",
    )


def test_a_second_run_to_the_same_output_is_refused(tmp_path):
    prefix = tmp_path / "out"
    with Staging(str(prefix)):
        done = run_command("--input", CORPUS, "--output-prefix", prefix)
    message = f"MW621 --output-prefix {prefix}: another run is writing there now"
    assert (done.returncode, done.stderr) == (2, f"megawrap.preprocess: error: {message}\n")
