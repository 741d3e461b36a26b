"""One child process with all its descendants: started, read line by line, stopped without leaving any behind."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from megawrap.errors import Interrupted

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_TETHER = Path(__file__).with_name("tether.py")


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent dies, so that they can still be found and ended."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start(
    argv: Sequence[str], environment: Mapping[str, str | None], *, reads: bool = False
) -> subprocess.Popen[bytes]:
    """Start ``argv`` in a session of its own with ``environment`` laid over ours (``None``: unset). Its output, errors
    included, is one stream. It has our standard input if it ``reads``. When we are killed it gets SIGTERM, so nothing
    outlives us."""
    merged: dict[str, str | None] = {**os.environ, **environment}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(_TETHER), *argv],
        env={name: value for name, value in merged.items() if value is not None},
        stdin=None if reads else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        bufsize=0,
    )


def run(
    argv: Sequence[str],
    environment: Mapping[str, str | None],
    on_line: Callable[[str], object],
    *,
    grace_seconds: float,
    reads: bool = False,
) -> int:
    """Run ``argv`` to its end and return its exit code (negative: the signal that ended it); see ``start``.

    SIGINT and SIGTERM sent to us are passed on; what is still there after ``grace_seconds`` is killed. In every case
    no descendant is left when this returns.

    Raises:
        Interrupted: after everything has ended, when we were asked to stop.
    """
    adopt_orphans()
    child = start(argv, environment, reads=reads)
    lines = _Lines(child)
    try:
        with Signals():
            for line in lines:
                on_line(line)
            return child.wait()
    except Interrupted as interruption:
        _stop(child, interruption.signal, lines, on_line, grace_seconds)
        raise
    finally:
        kill_tree(child.pid)
        child.wait()
        lines.close()


def kill_tree(root: int) -> None:
    """SIGKILL ``root`` and every descendant of ours in its wake, orphans that we adopted included."""
    ours = psutil.Process().children(recursive=True)
    for process in ours:
        if process.pid == root or _descends(process, root):
            _kill(process)
    psutil.wait_procs(ours, timeout=5)


def _descends(process: psutil.Process, root: int) -> bool:
    """Whether a child of ours came from ``root``: by its line of parents, or as an orphan by its session."""
    try:
        lineage = {parent.pid for parent in process.parents()}
        return root in lineage or os.getsid(process.pid) != os.getsid(0)
    except (psutil.NoSuchProcess, ProcessLookupError):
        return False


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _stop(
    child: subprocess.Popen[bytes],
    number: signal.Signals,
    lines: _Lines,
    on_line: Callable[[str], object],
    grace_seconds: float,
) -> None:
    """Pass the signal on and go on reading until the child has ended or its time is over; a second signal ends that."""
    child.send_signal(number)
    deadline = threading.Timer(grace_seconds, lambda: kill_tree(child.pid))
    deadline.start()
    try:
        with Signals():
            for line in lines:
                on_line(line)
            child.wait()
    except Interrupted:
        return
    finally:
        deadline.cancel()


class _Lines:
    """The lines of a child's output until the child has ended. Not until the pipe ends: a descendant that it left
    behind may hold that open for ever."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        self._pipe = child.stdout
        self._ended = os.pidfd_open(child.pid)
        self._rest = b""

    def __iter__(self) -> Iterator[str]:
        pipe = self._pipe.fileno()
        while True:
            ready, _, _ = select.select([pipe, self._ended], [], [])
            chunk = os.read(pipe, 1 << 16) if pipe in ready else b""
            if not chunk:
                break
            *complete, self._rest = (self._rest + chunk).split(b"\n")
            yield from map(_text, complete)
        if self._rest:
            yield _text(self._rest)
            self._rest = b""

    def close(self) -> None:
        """Give the pipe back."""
        self._pipe.close()
        os.close(self._ended)


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\r")


class Signals:
    """While entered, SIGINT and SIGTERM raise ``Interrupted`` in the main thread."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, self._raise) for number in self.NUMBERS}

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @staticmethod
    def _raise(number: int, _: object) -> None:
        raise Interrupted(number)
