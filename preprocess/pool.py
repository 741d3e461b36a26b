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
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._connections: dict[int, Connection] = {}
        self._doing: dict[int, Chunk] = {}
        self._job = job
        try:
            for worker in range(count):
                self._start(worker)
        except RunError:
            self.close()
            raise

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._processes)

    def _start(self, worker: int) -> None:
        try:
            ours, theirs = socket.socketpair()
            self._connections[worker] = Connection(ours.detach())
            with theirs:
                self._processes[worker] = _spawn(theirs.fileno())
        except OSError as error:
            message = f"worker {worker + 1} cannot be started: {error.strerror}"
            raise RunError(Finding(id="MW630", message=message, keys=("--workers",))) from None
        self._send(worker, self._job)

    def replace(self, worker: int) -> None:
        """End an idle worker and start another in its place: the sure way to have its memory back.

        Raises:
            RunError: it cannot be started.
        """
        self._connections.pop(worker).close()
        self._processes[worker].wait()
        self._start(worker)

    def order(self, worker: int, order: Order) -> None:
        """Tell a worker what to do after what it already has to.

        Raises:
            RunError: the worker has died.
        """
        if isinstance(order, Chunk):
            self._doing[worker] = order.bare()
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
        workers = {connection: worker for worker, connection in self._connections.items()}
        for ready in wait(list(workers)):
            assert isinstance(ready, Connection)
            worker = workers[ready]
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
        where = ""
        if chunk:
            where = f" while it encoded bytes {chunk.start} to {chunk.end} of {self._job.inputs[chunk.source]}"
        return Finding(id="MW630", message=f"worker {worker + 1} (process {process.pid}) {how}{where}{hint}")

    def close(self) -> None:
        """Kill what still runs and wait for it."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        for connection in self._connections.values():
            connection.close()


def _spawn(descriptor: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", _START, str(descriptor), str(os.getpid()), *sys.path]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    # A session of its own: Ctrl-C and signals to our group reach us alone, and we decide what becomes of the workers.
    return subprocess.Popen(
        words, pass_fds=[descriptor], stdin=subprocess.DEVNULL, env=environment, start_new_session=True
    )
