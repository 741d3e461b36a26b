"""A worker: reads chunks, encodes them, keeps the result until it is told the place, and writes it there.

It is a process of its own, so that it has the interpreter to itself. The engine starts it (``pool``); it ends when the
engine closes the connection, and is killed by the kernel when the engine's process dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from megawrap.errors import Finding, MegawrapError
from megawrap.preprocess.documents import BadLine
from megawrap.preprocess.encode import EncodedChunk, encode
from megawrap.preprocess.messages import (
    Chunk,
    Encoded,
    Failed,
    Job,
    Order,
    Rejected,
    Reply,
    Sizes,
    Write,
    Written,
)
from megawrap.preprocess.tokenizers import build

_PR_SET_PDEATHSIG = 1


def main(descriptor: int, parent: int) -> int:
    """Serve the process ``parent`` over the socket ``descriptor`` until it closes its end."""
    _die_with(parent)
    with Connection(descriptor) as connection:
        try:
            _serve(connection)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return 0
    return 0


def _die_with(parent: int) -> None:
    """Ask Linux to kill this process when its parent dies, however that happens."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we could ask
        os._exit(1)


def _serve(connection: Connection) -> None:
    job: Job = connection.recv()
    try:
        worker = Worker(job)
    except MegawrapError as failed:
        connection.send(Failed(failed.findings[0]))
        return
    while True:
        order: Order = connection.recv()
        connection.send(_guarded(worker, order))


def _guarded(worker: Worker, order: Order) -> Reply:
    try:
        return worker.obey(order)
    except OSError as error:
        return Failed(worker.blame(order, error))
    except MemoryError:
        message = "a worker ran out of memory; fewer workers need less of it"
        return Failed(Finding(id="MW631", message=message, keys=("--workers",)))


class Worker:
    """The work itself, free of processes and connections."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.tokenizer = build(job.tokenizer)
        self.kept: dict[int, EncodedChunk] = {}

    def obey(self, order: Order) -> Reply:
        """Do as told and report.

        Raises:
            OSError: the input cannot be read, or the output not be written.
        """
        return self._write(order) if isinstance(order, Write) else self._encode(order)

    def blame(self, order: Order, error: OSError) -> Finding:
        """What an ``error`` on the way to obey ``order`` means."""
        if isinstance(order, Write):
            message = f"{self.job.targets[order.chunk.target].name}.bin cannot be written: {error.strerror}"
            return Finding(id="MW622", message=message, keys=("--output-prefix",))
        message = f"{self.job.input} cannot be read: {error.strerror}"
        return Finding(id="MW602", message=message, keys=("--input",))

    def _encode(self, chunk: Chunk) -> Reply:
        data = _read(self.job.input, chunk.start, chunk.end)
        key = self.job.targets[chunk.target].key
        try:
            encoded = encode(data, key, self.tokenizer, self.job.eod, self.job.dtype)
        except BadLine as bad:
            return Rejected(chunk, chunk.start + bad.offset, bad.reason)
        self.kept[chunk.number] = encoded
        return Encoded(chunk, Sizes(len(encoded.tokens), len(encoded.lengths), len(encoded.ends), encoded.blank))

    def _write(self, order: Write) -> Written:
        encoded = self.kept.pop(order.chunk.number)
        target = self.job.targets[order.chunk.target]
        place = order.place
        _put(target.tokens, encoded.tokens, place.tokens)
        _put(target.lengths, encoded.lengths, place.sequences)
        _put(target.ends, encoded.ends + place.sequences, place.documents)
        return Written(order.chunk)


def _read(path: Path, start: int, end: int) -> bytes:
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        data = bytearray()
        while len(data) < end - start and (block := file.read(end - start - len(data))):
            data += block
    return bytes(data)


def _put(path: Path, values: npt.NDArray[Any], position: int) -> None:
    """Write an array into a file that exists, ``position`` of its items behind the start."""
    with path.open("r+b", buffering=0) as file:
        file.seek(position * values.itemsize)
        rest = memoryview(values.view(np.uint8))
        while rest:
            rest = rest[file.write(rest) :]
