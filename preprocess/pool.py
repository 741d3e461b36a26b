"""The worker processes, seen from the engine: started together, spoken to by number, and never left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from types import TracebackType

from megawrap.errors import Finding, RunError
from megawrap.preprocess.messages import Chunk, Failed, Job, Order, Reply, Written

# The worker imports from where we did. A plain fork would be quicker, and unsafe in a process with threads.
_START = (
    "import sys; sys.path[:] = sys.argv[3:]; from megawrap.preprocess.worker import main; "
    "sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))"
)


class Pool:
    """``count`` workers for one job; leaving the ``with`` block ends them all, whatever they do."""

    def __init__(self, count: int, job: Job) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[Connection] = []
        self._doing: dict[int, Chunk] = {}
        self._job = job
        try:
            for _ in range(count):
                self._start()
        except OSError as error:
            self.close()
            message = f"worker {len(self._connections)} cannot be started: {error.strerror}"
            raise RunError(Finding(id="MW630", message=message, keys=("--workers",))) from None

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._processes)

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._connections.append(Connection(ours.detach()))
        with theirs:
            self._processes.append(_spawn(theirs.fileno()))

    def greet(self) -> None:
        """Tell every worker its job.

        Raises:
            RunError: a worker has died.
        """
        for worker in range(len(self)):
            self._send(worker, self._job)

    def order(self, worker: int, order: Order) -> None:
        """Tell a worker what to do after what it already has to.

        Raises:
            RunError: the worker has died.
        """
        if isinstance(order, Chunk):
            self._doing[worker] = order
        self._send(worker, order)

    def _send(self, worker: int, message: Job | Order) -> None:
        try:
            self._connections[worker].send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise RunError(self._death(worker)) from None

    def replies(self) -> Iterator[tuple[int, Reply]]:
        """Wait until a worker says something, and give all that has been said, with the worker's number.

        Raises:
            RunError: a worker has died, or says that it cannot go on.
        """
        for ready in wait(self._connections):
            assert isinstance(ready, Connection)
            worker = self._connections.index(ready)
            try:
                reply: Reply = ready.recv()
            except (EOFError, ConnectionResetError):
                raise RunError(self._death(worker)) from None
            if isinstance(reply, Failed):
                raise RunError(reply.finding)
            if not isinstance(reply, Written):
                self._doing.pop(worker)
            yield worker, reply

    def _death(self, worker: int) -> Finding:
        process = self._processes[worker]
        code = process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        hint = "; if nobody did, memory ran out" if code == -signal.SIGKILL else ""
        chunk = self._doing.get(worker)
        where = f" while it encoded bytes {chunk.start} to {chunk.end} of {self._job.input}" if chunk else ""
        return Finding(id="MW630", message=f"worker {worker + 1} (process {process.pid}) {how}{where}{hint}")

    def close(self) -> None:
        """Kill what still runs and wait for it."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        for connection in self._connections:
            connection.close()


def _spawn(descriptor: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", _START, str(descriptor), str(os.getpid()), *sys.path]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    # A session of its own: Ctrl-C and signals to our group reach us alone, and we decide what becomes of the workers.
    return subprocess.Popen(
        words, pass_fds=[descriptor], stdin=subprocess.DEVNULL, env=environment, start_new_session=True
    )
