"""Streams and events: the CPU runs everything in order, so they have nothing to do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import torch


class Stream:
    """A stream on which everything has been done already."""

    cuda_stream = 0
    device = torch.device("cpu")

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None: ...

    def synchronize(self) -> None:
        """Done."""

    def wait_stream(self, stream: Any) -> None:
        """Done."""

    def wait_event(self, event: Any) -> None:
        """Done."""

    def record_event(self, event: Any = None) -> Event:
        """An event that has happened."""
        event = event or Event()
        event.record()
        return event

    def query(self) -> bool:
        """Done."""
        return True


class Event:
    """A moment on the CPU's clock."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._time = 0.0

    def record(self, stream: Any = None) -> None:
        """Now."""
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        """It has happened."""

    def wait(self, stream: Any = None) -> None:
        """It has happened."""

    def query(self) -> bool:
        """It has happened."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds until ``end``."""
        return (end._time - self._time) * 1e3


@contextlib.contextmanager
def _stream(_: Any) -> Iterator[None]:
    yield


def install() -> None:
    """Replace streams, events and the markers of profilers."""
    cuda: Any = torch.cuda
    only = Stream()
    cuda.Stream, cuda.Event = Stream, Event
    cuda.current_stream, cuda.default_stream = lambda device=None: only, lambda device=None: only
    cuda.set_stream = lambda stream: None
    cuda.stream = _stream
    cuda.is_current_stream_capturing = lambda: False
    nvtx: Any = torch.cuda.nvtx
    nvtx.range_push, nvtx.mark = lambda message: 0, lambda message: 0
    nvtx.range_pop = lambda: 0
    torch.Tensor.record_stream = lambda self, stream: None
