"""Which rank failed first, from what torchrun says at the end."""

from __future__ import annotations

import dataclasses
import re
import signal
from collections import deque
from collections.abc import Iterable

_ROOT_CAUSE = re.compile(r"Root Cause \(first observed failure\)")
_RANK = re.compile(r"^\s*rank\s*:\s*(\d+)")
_HOST = re.compile(r"^\s*host\s*:\s*(\S+)")
_EXIT = re.compile(r"^\s*exitcode\s*:\s*(-?\d+)")
_NOISE = re.compile(r"^\s*$|^\[rank\d+\]:\s*$|warnings?\.warn")
KEPT_LINES = 200


@dataclasses.dataclass(frozen=True)
class Failure:
    """The rank that failed first. ``exit_code`` is negative when a signal ended it."""

    rank: int
    host: str | None
    exit_code: int | None

    @property
    def what(self) -> str:
        """For people: how the rank ended."""
        if self.exit_code is None:
            return "failed"
        if self.exit_code < 0:
            return f"was ended by {signal.Signals(-self.exit_code).name}"
        return f"failed with exit code {self.exit_code}"


class FailureReader:
    """Fed with every line of a step; knows at the end who failed first and what that rank said last."""

    def __init__(self) -> None:
        self._launcher: deque[str] = deque(maxlen=KEPT_LINES)
        self._last: dict[int, deque[str]] = {}

    def feed(self, rank: int | None, text: str) -> None:
        """Take in a line."""
        if rank is None:
            self._launcher.append(text)
        elif not _NOISE.search(text):
            self._last.setdefault(rank, deque(maxlen=KEPT_LINES)).append(text)

    @property
    def failure(self) -> Failure | None:
        """The first failure, or ``None`` when the launcher named none."""
        return root_cause(self._launcher)

    def last_lines(self, rank: int | None, count: int = 12) -> list[str]:
        """The last lines of a rank, from the last traceback on if there is one; of the launcher for ``None``."""
        lines = list(self._launcher if rank is None else self._last.get(rank, ()))
        starts = [index for index, line in enumerate(lines) if line.lstrip().startswith("Traceback (most recent")]
        return lines[starts[-1] :][-count:] if starts else lines[-count:]


def root_cause(lines: Iterable[str]) -> Failure | None:
    """Read the "Root Cause" block of torchrun (torch.distributed.elastic.multiprocessing.errors.ChildFailedError)."""
    rank = host = code = None
    inside = False
    for line in lines:
        inside = inside or bool(_ROOT_CAUSE.search(line))
        if not inside:
            continue
        rank = _first(_RANK, line, rank)
        host = _first(_HOST, line, host)
        code = _first(_EXIT, line, code)
    return Failure(int(rank), host, int(code) if code else None) if rank is not None else None


def _first(pattern: re.Pattern[str], line: str, known: str | None) -> str | None:
    found = pattern.search(line)
    return known if known is not None or found is None else found[1]
