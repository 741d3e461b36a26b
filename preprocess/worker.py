"""A worker: reads chunks, encodes them, keeps the result until it is told the place, and writes it there.

It is a process of its own, so that it has the interpreter to itself. The engine starts it (``pool``); it ends when the
engine closes the connection, and is killed by the kernel when the engine's process dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import zlib
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from megawrap.errors import Finding, MegawrapError
from megawrap.preprocess.documents import BadLine
from megawrap.preprocess.encode import Arrays, EncodedChunk, encode
from megawrap.preprocess.memory import resident
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
_ROOM = 64 << 20


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
    except MemoryError:
        connection.send(Failed(_out_of_memory()))
        return
    while True:
        connection.send(_next(connection, worker))


def _next(connection: Connection, worker: Worker) -> Reply:
    try:
        order: Order = connection.recv()
        try:
            return worker.obey(order)
        except OSError as error:
            return Failed(worker.blame(order, error))
    except MemoryError:
        return Failed(_out_of_memory())


def _out_of_memory() -> Finding:
    return Finding(id="MW631", message="a worker ran out of memory; fewer workers need less of it", keys=("--workers",))


class Worker:
    """The work itself, free of processes and connections."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.keys = [target.key for target in job.targets]
        self.tokenizer = build(job.tokenizer)
        self.kept: dict[int, tuple[Arrays, ...]] = {}
        self.memory = max(job.memory, resident() + _ROOM)

    def obey(self, order: Order) -> Reply:
        """Do as told and report.

        Raises:
            OSError: the input cannot be read, or the output not be written.
        """
        return self._write(order) if isinstance(order, Write) else self._encode(order)

    def blame(self, order: Order, error: OSError) -> Finding:
        """What an ``error`` on the way to obey ``order`` means."""
        if isinstance(order, Write):
            message = f"{self.job.targets[0].name}.bin cannot be written: {error.strerror}"
            return Finding(id="MW622", message=message, keys=("--output-prefix",))
        message = f"{self.job.inputs[order.source]} cannot be read: {error.strerror}"
        return Finding(id="MW602", message=message, keys=("--input",))

    def _encode(self, chunk: Chunk) -> Encoded:
        data = chunk.data
        if data is None:
            data = _read(self.job.inputs[chunk.source], chunk.start, chunk.end)
        encoded = encode(data, self.keys, self.tokenizer, self.job.eod, self.job.dtype)
        self.kept[chunk.number] = encoded.keys
        rejected = tuple(_rejected(bad, chunk.start, data) for bad in encoded.bad)
        return Encoded(chunk.bare(), _sizes(encoded), rejected, full=resident() > self.memory)

    def _write(self, order: Write) -> Written:
        checksum = 0
        arrays = self.kept.pop(order.chunk.number)
        for target, place, encoded in zip(self.job.targets, order.places, arrays, strict=True):
            checksum = _put(target.tokens, encoded.tokens, place.tokens, checksum)
            checksum = _put(target.lengths, encoded.lengths, place.sequences, checksum)
            checksum = _put(target.ends, encoded.ends + place.sequences, place.documents, checksum)
        return Written(order.chunk, checksum)


def _sizes(encoded: EncodedChunk) -> tuple[Sizes, ...]:
    return tuple(
        Sizes(len(arrays.tokens), len(arrays.lengths), len(arrays.ends), encoded.blank, len(encoded.bad))
        for arrays in encoded.keys
    )


def _rejected(bad: BadLine, start: int, data: bytes) -> Rejected:
    end = data.find(b"\n", bad.offset)
    content = data[bad.offset : end if end >= 0 else len(data)]
    return Rejected(bad.number, start + bad.offset, bad.kind, bad.reason, content)


def _read(path: Path, start: int, end: int) -> bytes:
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        data = bytearray()
        while len(data) < end - start and (block := file.read(end - start - len(data))):
            data += block
    return bytes(data)


def _put(path: Path, values: npt.NDArray[Any], position: int, checksum: int) -> int:
    """Write an array into a file that exists, ``position`` of its items behind the start; continue ``checksum``."""
    data = memoryview(values.view(np.uint8))
    with path.open("r+b", buffering=0) as file:
        file.seek(position * values.itemsize)
        rest = data
        while rest:
            rest = rest[file.write(rest) :]
    return zlib.crc32(data, checksum)
