#!/usr/bin/env python3
"""Measures the bandwidth between ranks over RCCL, NCCL or gloo: one file that needs nothing but torch.

    torchrun --nproc-per-node 8 worker.py --min-bytes 1G --max-bytes 8G --output result.json

Every rank runs it, with RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT set as torchrun does. Rank 0 speaks
JSON lines on stdout: ``start``, a ``record`` for each measured size, ``problem``, ``done`` or ``error``; a rank that
fails says ``error`` too. ``--output`` gets all of it, whole or not at all.

Units: bytes are those of the whole buffer (for all_gather the gathered one, for reduce_scatter the scattered one);
algbw = bytes / seconds and busbw = algbw x factor in decimal GB/s (nccl-tests, doc/PERFORMANCE.md). Seconds are the
median over the iterations on each rank, so that one pre-empted iteration on a shared host does not count, and then the
maximum over the ranks, because a collective has ended only when its slowest rank has.

Exit codes: 0 measured, 2 bad arguments, 3 wrong data, or ranks that did not meet or did not finish.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import re
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist

HOST = socket.gethostname()
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SLOWEST = {"nccl": 1e9, "gloo": 1e7}
"""Bytes a second below which a measurement counts as hung, by backend."""
TILE = 1021
"""Length of the known pattern: a prime, so that a block that lands a power of two away is seen."""
SUMMANDS = 32
"""Ranks that take part in the sum of one element: sums stay below 97, exact in bfloat16 in any order of adding."""


class Failure(Exception):
    """What stops the measurement: an id, a message for people, further facts for programs."""

    def __init__(self, finding: str, message: str, exit_code: int = 3, **facts: Any) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.event = {"event": "error", **facts, "findings": [{"id": finding, "message": message}]}


def say(event: Mapping[str, Any]) -> None:
    """One JSON line on stdout, in one write so that the lines of several ranks do not mix."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def parse_bytes(text: str) -> int:
    """Bytes of ``64M``: K, M, G and T are binary, as in nccl-tests."""
    found = re.fullmatch(r"([0-9]+)([KMGT]?)(?:I?B)?", text.strip().upper())
    if not found or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 1M, 64M or 8G")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[found[2]]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _collectives(text: str) -> list[str]:
    for name in text.split(","):
        if name not in COLLECTIVES:
            raise argparse.ArgumentTypeError(f"no collective {name!r}; there are {', '.join(COLLECTIVES)}")
    return text.split(",")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Failure("MW402", f"worker.py: {message}", exit_code=2)


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; ``Failure`` with exit code 2 for words that make no sense."""
    parser = _Parser(prog="worker.py", description="Measures the bandwidth between ranks.")
    add = parser.add_argument
    add("--backend", choices=("auto", "nccl", "gloo"), default="auto", help="nccl is RCCL on ROCm (default: auto)")
    add("--collectives", type=_collectives, default=["all_reduce"], metavar="A,B", help=f"of {', '.join(COLLECTIVES)}")
    add("--pairs", action="store_true", help="instead: one way from each rank to each other, --max-bytes only")
    add("--min-bytes", type=parse_bytes, default="1M", metavar="SIZE", help="default: %(default)s")
    add("--max-bytes", type=parse_bytes, default="64M", metavar="SIZE", help="default: %(default)s")
    add("--factor", type=_positive, default=4, help="from one size to the next (default: %(default)s)")
    add("--iters", type=_positive, help="timed iterations (default: 20, over gloo 5)")
    add("--warmup", type=_positive, help="iterations before them (default: 5, over gloo 1)")
    add("--dtype", choices=tuple(DTYPES), default="float32", help="default: %(default)s")
    add("--output", type=Path, metavar="FILE", help="JSON, written by rank 0")
    add("--timeout", type=_positive, default=60, metavar="S", help="for all ranks to come (default: %(default)s)")
    add("--hosts", type=lambda text: text.split(","), default=[], metavar="A,B", help="that should come, in rank order")
    add("--processes-per-host", type=_positive, default=1, metavar="N", help="default: %(default)s")
    options = parser.parse_args(words)
    if not options.pairs and options.min_bytes > options.max_bytes:
        parser.error(f"--min-bytes {options.min_bytes} is above --max-bytes {options.max_bytes}")
    if options.factor < 2:
        parser.error("--factor must be at least 2")
    return options


def sizes(options: argparse.Namespace) -> list[int]:
    """The message sizes in bytes, from small to large."""
    if options.pairs:
        return [options.max_bytes]
    steps = (options.min_bytes * options.factor**step for step in itertools.count())
    return list(itertools.takewhile(lambda nbytes: nbytes <= options.max_bytes, steps))


@dataclass(frozen=True)
class Place:
    """Where this process stands in the world, and where the world meets."""

    rank: int
    ranks: int
    local_rank: int
    meeting: tuple[str, int]

    @classmethod
    def here(cls) -> Place:
        """From the environment that torchrun sets; ``Failure`` when it did not."""
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
        if missing := [name for name in names if not os.environ.get(name)]:
            raise Failure("MW402", f"worker.py runs under torchrun: {', '.join(missing)} not set", exit_code=2)
        rank, ranks, local_rank, address, port = (os.environ[name] for name in names)
        if unfit := [name for name in names if name != "MASTER_ADDR" and not os.environ[name].isdecimal()]:
            values = ", ".join(f"{name}={os.environ[name]!r}" for name in unfit)
            raise Failure("MW402", f"worker.py: not a whole number: {values}", exit_code=2)
        if ranks == "1":
            raise Failure("MW402", "nothing to measure: the world has one rank", exit_code=2)
        return cls(int(rank), int(ranks), int(local_rank), (address, int(port)))


def connect(place: Place, timeout: int) -> Any:
    """The store at the meeting point. torchrun's agent may serve it already; otherwise rank 0 does."""
    serves = place.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    wait = timedelta(seconds=timeout)
    try:
        store = dist.TCPStore(*place.meeting, place.ranks, serves, wait, wait_for_workers=False, multi_tenant=True)
    except RuntimeError as error:
        does = "open" if serves else f"reach, within {timeout} s,"
        point = "{}:{}".format(*place.meeting)
        message = f"rank {place.rank} on {HOST} cannot {does} the meeting point {point}: {_first_line(error)}"
        raise Failure("MW403", message, rank=place.rank, host=HOST) from error
    return dist.PrefixStore(f"megawrap/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


def meet(store: Any, place: Place, options: argparse.Namespace) -> list[str]:
    """Wait until all ranks have come; the host of each rank on rank 0, nothing on the others.

    Raises:
        Failure: names the ranks, and where it is known the hosts, that did not come in time, or came twice.
        SystemExit: with 3 on a rank that came while another did not; rank 0 says which.
    """
    if store.add(f"came/{place.rank}", 1) > 1:
        raise Failure("MW403", f"rank {place.rank} was started twice, the second time on {HOST}", rank=place.rank)
    store.set(f"rank/{place.rank}", f"{place.rank} {HOST} {os.getpid()}")
    store.add("arrived", 1)
    if place.rank:
        if _told_by_first(store, options.timeout) == b"failed":
            raise SystemExit(3)
        return []
    if absent := _absent(store, place.ranks, options.timeout):
        store.set("meeting", "failed")
        time.sleep(1)  # the store lives in this process: let those who came read it
        raise _absence(absent, place, options)
    store.set("meeting", "complete")
    return [store.get(f"rank/{rank}").decode().split()[1] for rank in range(place.ranks)]


def _told_by_first(store: Any, timeout: int) -> object:
    store.set_timeout(timedelta(seconds=timeout + 5))  # it gives the last rank until its own end
    try:
        return store.get("meeting")
    except RuntimeError as error:
        text = f"rank 0 did not come to the meeting point, or died there: {_first_line(error)}"
        raise Failure("MW403", f"{text} (said by {HOST})", absent=[{"host": None, "ranks": [0]}]) from error


def _absent(store: Any, ranks: int, timeout: int) -> list[int]:
    end = time.monotonic() + timeout
    while store.add("arrived", 0) < ranks and time.monotonic() < end:
        time.sleep(0.05)
    return [rank for rank in range(ranks) if not store.check([f"rank/{rank}"])]


def _absence(absent: Sequence[int], place: Place, options: argparse.Namespace) -> Failure:
    expected = [host for host in options.hosts for _ in range(options.processes_per_host)]
    by_host: dict[str | None, list[int]] = {}
    for rank in absent:
        by_host.setdefault(expected[rank] if rank < len(expected) else None, []).append(rank)
    who = ", ".join(ranks_text(ranks) + (f" on {host}" if host else "") for host, ranks in by_host.items())
    where = "{}:{} within {} s".format(*place.meeting, options.timeout)
    message = f"{len(absent)} of {place.ranks} ranks did not come to {where}: {who}"
    facts = [{"host": host, "ranks": ranks} for host, ranks in by_host.items()]
    return Failure("MW403", message, absent=facts)


def ranks_text(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 0, 8-15``."""
    runs = itertools.groupby(enumerate(sorted(ranks)), lambda numbered: numbered[1] - numbered[0])
    spans = [[rank for _, rank in run] for _, run in runs]
    words = (str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(words)}"


def contribution(rank: int, ranks: int) -> torch.Tensor:
    """[TILE] what a rank gives to a sum: 1, 2 or 3, and 0 where it is none of the summands (32,000 ranks at most)."""
    position = torch.arange(TILE)
    takes_part = (rank - position * ranks // TILE) % ranks < SUMMANDS
    return (1 + (rank + position) % 3) * takes_part


def total(ranks: int) -> torch.Tensor:
    """[TILE] the sum of the contributions of all ranks."""
    position = torch.arange(TILE)
    rank = (position * ranks // TILE + torch.arange(min(ranks, SUMMANDS)).unsqueeze(1)) % ranks
    return (1 + (rank + position) % 3).sum(0)


def signature(seed: int) -> torch.Tensor:
    """[TILE] numbers that tell one sender, or one block, from another; below 251, exact in bfloat16."""
    return (7 * torch.arange(TILE) + 13 * seed) % 251


@dataclass(frozen=True)
class Block:
    """A flat buffer, or a part of it, and the pattern that it carries: ``tile`` repeated, from ``offset`` on."""

    buffer: torch.Tensor
    tile: torch.Tensor
    offset: int = 0

    def put(self) -> None:
        """Write the pattern."""
        for part, pattern in self._parts():
            part.copy_(pattern)

    def wrong(self) -> int:
        """Number of elements that are not the pattern's."""
        return sum(int(torch.count_nonzero(part != pattern)) for part, pattern in self._parts())

    def _parts(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Whole tiles as [n, TILE], then the rest: neither needs a second buffer as large."""
        pattern = self.tile.roll(-(self.offset % TILE)).to(device=self.buffer.device, dtype=self.buffer.dtype)
        tiles, rest = divmod(self.buffer.numel(), TILE)
        yield self.buffer[: tiles * TILE].view(tiles, TILE), pattern
        yield self.buffer[tiles * TILE :], pattern[:rest]


@dataclass(frozen=True)
class Operation:
    """A collective on buffers of one size: what this rank sends and what it must have received afterwards."""

    run: Callable[[], object]
    sends: Sequence[Block]
    receives: Sequence[Block]

    def verify(self) -> int:
        """Run it once on known data; the number of wrong elements on this rank."""
        for block in self.receives:
            block.buffer.zero_()
        for block in self.sends:
            block.put()
        self.run()
        return sum(block.wrong() for block in self.receives)


@dataclass(frozen=True)
class Group:
    """The ranks that measure, seen from one of them."""

    rank: int
    ranks: int
    device: torch.device
    dtype: torch.dtype

    def zeros(self, count: int) -> torch.Tensor:
        """[count] a buffer on the device of this rank."""
        return torch.zeros(count, dtype=self.dtype, device=self.device)


def _all_reduce(group: Group, count: int) -> Operation:
    data = group.zeros(count)
    mine, sums = contribution(group.rank, group.ranks), total(group.ranks)
    return Operation(lambda: dist.all_reduce(data), [Block(data, mine)], [Block(data, sums)])


def _all_gather(group: Group, count: int) -> Operation:
    shard, whole = group.zeros(count // group.ranks), group.zeros(count)
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    gathered = [Block(part, signature(rank)) for rank, part in enumerate(whole.chunk(group.ranks))]
    return Operation(lambda: gather(whole, shard), [Block(shard, signature(group.rank))], gathered)


def _reduce_scatter(group: Group, count: int) -> Operation:
    shard, whole = group.zeros(count // group.ranks), group.zeros(count)
    scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
    mine = Block(whole, contribution(group.rank, group.ranks))
    sums = Block(shard, total(group.ranks), offset=group.rank * shard.numel())
    return Operation(lambda: scatter(shard, whole), [mine], [sums])


def _alltoall(group: Group, count: int) -> Operation:
    sent, got, me, ranks = group.zeros(count), group.zeros(count), group.rank, group.ranks
    sends = [Block(part, signature(me * ranks + rank)) for rank, part in enumerate(sent.chunk(ranks))]
    receives = [Block(part, signature(rank * ranks + me)) for rank, part in enumerate(got.chunk(ranks))]
    return Operation(lambda: dist.all_to_all_single(got, sent), sends, receives)


def _sendrecv(group: Group, count: int) -> Operation:
    """Each rank sends to the next and receives from the one before."""
    sent, got = group.zeros(count), group.zeros(count)
    after, before = (group.rank + 1) % group.ranks, (group.rank - 1) % group.ranks

    def run() -> None:
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, after), dist.P2POp(dist.irecv, got, before)]):
            work.wait()

    return Operation(run, [Block(sent, signature(group.rank))], [Block(got, signature(before))])


def _broadcast(group: Group, count: int) -> Operation:
    block = Block(group.zeros(count), signature(0))
    return Operation(lambda: dist.broadcast(block.buffer, 0), [block] if group.rank == 0 else [], [block])


@dataclass(frozen=True)
class Collective:
    """How to run it; ``factor`` is busbw / algbw for n ranks; ``sharded``: the buffer is cut into one part a rank."""

    build: Callable[[Group, int], Operation]
    factor: Callable[[int], float] = lambda n: (n - 1) / n
    sharded: bool = True


# Factors: nccl-tests, doc/PERFORMANCE.md. megawrap.rccl_tests.records has the same table; this file stands alone.
COLLECTIVES = {
    "all_reduce": Collective(_all_reduce, lambda n: 2 * (n - 1) / n, sharded=False),
    "all_gather": Collective(_all_gather),
    "reduce_scatter": Collective(_reduce_scatter),
    "alltoall": Collective(_alltoall),
    "sendrecv": Collective(_sendrecv, lambda n: 1, sharded=False),
    "broadcast": Collective(_broadcast, lambda n: 1, sharded=False),
}


def one_way(group: Group, count: int, source: int, target: int) -> Operation:
    """From one rank to another, begun by the receiver's token, so that the receiver's clock alone times it."""
    block, token = Block(group.zeros(count), signature(source)), group.zeros(1)

    def send() -> None:
        dist.recv(token, target)
        dist.send(block.buffer, target)

    def receive() -> None:
        dist.send(token, source)
        dist.recv(block.buffer, source)

    return Operation(send, [block], []) if group.rank == source else Operation(receive, [], [block])


def pair_rounds(ranks: int) -> list[list[tuple[int, int]]]:
    """Every pair once, in rounds of disjoint pairs (circle method: one seat stays, the others turn)."""
    seats: list[int | None] = [*range(ranks), *([None] if ranks % 2 else [])]
    rounds = []
    for _ in range(len(seats) - 1):
        facing = zip(seats[: len(seats) // 2], reversed(seats), strict=False)
        rounds.append([(one, other) for one, other in facing if one is not None and other is not None])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds


def time_on_cpu(run: Callable[[], object], iters: int) -> list[float]:
    """Seconds of each iteration."""
    marks = [time.perf_counter()]
    for _ in range(iters):
        run()
        marks.append(time.perf_counter())
    return [end - start for start, end in itertools.pairwise(marks)]


def time_on_gpu(run: Callable[[], object], iters: int) -> list[float]:
    """Seconds of each iteration, by events on the stream: the host runs ahead and is not timed."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(iters + 1)]
    marks[0].record()
    for mark in marks[1:]:
        run()
        mark.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in itertools.pairwise(marks)]


@dataclass
class Bench:
    """The measurement as one rank sees it; on rank 0 it also collects."""

    group: Group
    store: Any
    options: argparse.Namespace
    backend: str
    hosts: list[str]
    records: list[dict[str, Any]] = field(default_factory=list)
    problems: list[dict[str, Any]] = field(default_factory=list)

    def collectives(self) -> None:
        """All sizes of all collectives."""
        for name, nbytes in itertools.product(self.options.collectives, sizes(self.options)):
            collective, ranks = COLLECTIVES[name], self.group.ranks
            shards = ranks if collective.sharded else 1
            count = max(1, nbytes // self.group.dtype.itemsize // shards) * shards
            try:
                results = self._results(name, count, functools.partial(collective.build, self.group, count))
            except RuntimeError as error:
                if not _unsupported(error):
                    raise
                about = {"collective": name, "group": "world", "bytes": nbytes}
                self._problem(about, f"unsupported by {self.backend} of this torch: {_first_line(error)}")
            else:
                self._record(name, "world", count, results, collective.factor(ranks))

    def pairs(self) -> None:
        """One-way bandwidth of every ordered pair of ranks, disjoint pairs at once."""
        count = max(1, self.options.max_bytes // self.group.dtype.itemsize)
        for pairs in pair_rounds(self.group.ranks):
            for ways in (pairs, [(target, source) for source, target in pairs]):
                mine = [way for way in ways if self.group.rank in way]
                build = functools.partial(one_way, self.group, count, *mine[0]) if mine else None
                results = self._results("one_way", count, build)
                for source, target in ways if results else ():
                    self._record("one_way", f"{source}->{target}", count, {target: results[target]}, factor=1)

    def _results(self, name: str, count: int, build: Callable[[], Operation] | None) -> dict[int, Any]:
        """What each rank measured, on rank 0; nothing on the others. No ``build``: this rank stands by."""
        nbytes = count * self.group.dtype.itemsize
        with self.guard(self.limit(nbytes), f"{name} of {nbytes} bytes"):
            return self._exchange(self._measure(build()) if build else self._stand_by())

    def _measure(self, operation: Operation) -> dict[str, Any]:
        wrong = operation.verify()
        for _ in range(self.options.warmup):
            operation.run()
        self._barrier()
        clock = time_on_gpu if self.backend == "nccl" else time_on_cpu
        seconds = statistics.median(clock(operation.run, self.options.iters))
        # Once more after the load: some links corrupt only when they are warm.
        return {"seconds": seconds, "wrong": max(wrong, operation.verify())}

    def _stand_by(self) -> dict[str, Any]:
        self._barrier()
        return {}

    def _barrier(self) -> None:
        dist.barrier(device_ids=[self.group.device.index] if self.backend == "nccl" else None)
        if self.backend == "nccl":
            torch.cuda.synchronize()

    def _exchange(self, result: object) -> dict[int, Any]:
        """Through the store, not through the network under test, which may corrupt what it carries."""
        turn = self.store.add(f"turn/{self.group.rank}", 1)
        self.store.set(f"result/{turn}/{self.group.rank}", json.dumps(result))
        ranks = range(self.group.ranks) if self.group.rank == 0 else ()
        return {rank: json.loads(self.store.get(f"result/{turn}/{rank}")) for rank in ranks}

    def _record(self, name: str, group: str, count: int, results: Mapping[int, Any], factor: float) -> None:
        if not results:
            return
        nbytes = count * self.group.dtype.itemsize
        seconds = max(result["seconds"] for result in results.values())
        algbw = nbytes / seconds / 1e9
        wrong = sum(result["wrong"] for result in results.values())
        about = {"collective": name, "group": group, "bytes": nbytes}
        measured = {"seconds": seconds, "algbw": algbw, "busbw": algbw * factor, "wrong": wrong}
        shape = {"count": count, "dtype": self.options.dtype, "ranks": self.group.ranks if group == "world" else 2}
        self.records.append({"source": f"torch-{self.backend}", **about, **shape, **measured})
        say({"event": "record", **self.records[-1]})
        if bad := [rank for rank, result in results.items() if result["wrong"]]:
            where = ", ".join(dict.fromkeys(self.hosts[rank] for rank in bad))
            text = f"{wrong} wrong elements, received by {ranks_text(bad)} on {where}"
            self._problem({**about, "wrong_on": bad}, text)

    def _problem(self, about: Mapping[str, Any], text: str) -> None:
        if self.group.rank == 0:
            self.problems.append({**about, "problem": text})
            say({"event": "problem", **self.problems[-1]})

    def limit(self, nbytes: int) -> float:
        """Seconds after which a measurement has hung: the time to meet, and all iterations at a hopeless rate."""
        rounds = self.options.iters + self.options.warmup + 2
        return float(self.options.timeout + nbytes * rounds / SLOWEST[self.backend])

    @contextlib.contextmanager
    def guard(self, seconds: float, what: str) -> Iterator[None]:
        """Say which rank was doing what when torch gives up (RuntimeError) or nothing comes back at all.

        A hung RCCL call cannot be interrupted, so a timer tells of it and ends the process.
        """
        late = threading.Timer(seconds, self._give_up, (f"{what} did not end within {seconds:.0f} s",))
        late.daemon = True
        late.start()
        try:
            yield
        except RuntimeError as error:
            if _unsupported(error):
                raise
            raise self._failure(f"{what} failed: {_first_line(error)}") from error
        finally:
            late.cancel()

    def _give_up(self, text: str) -> NoReturn:
        say(self._failure(text).event)
        os._exit(3)

    def _failure(self, text: str) -> Failure:
        return Failure("MW405", f"rank {self.group.rank} on {HOST}: {text}", rank=self.group.rank, host=HOST)

    def document(self) -> dict[str, Any]:
        """The content of ``--output``; ``matrix`` [source][target] in GB/s is there for pairs only."""
        options = vars(self.options)
        meta = {
            "hosts": self.hosts,
            "ranks": self.group.ranks,
            "backend": self.backend,
            "device": torch.cuda.get_device_name(self.group.device) if self.backend == "nccl" else "cpu",
            **{"torch": torch.__version__, "hip": torch.version.hip, "cuda": torch.version.cuda},
            **{name: options[name] for name in ("dtype", "iters", "warmup")},
            "collectives": ["one_way"] if self.options.pairs else self.options.collectives,
            "sizes": sizes(self.options),
            "seconds": "median over iterations, then maximum over ranks",
        }
        whole: dict[str, Any] = {"meta": meta, "records": self.records, "problems": self.problems}
        return {**whole, "matrix": self._matrix()} if self.options.pairs else whole

    def _matrix(self) -> list[list[float | None]]:
        ways = {record["group"]: record["busbw"] for record in self.records}
        ranks = range(self.group.ranks)
        return [[ways.get(f"{source}->{target}") for target in ranks] for source in ranks]


def _unsupported(error: RuntimeError) -> bool:
    return isinstance(error, NotImplementedError) or bool(re.search(r"(not|n't|un) ?(support|implement)", str(error)))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def write(path: Path, content: Mapping[str, Any]) -> None:
    """JSON into a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as directory:
        whole = Path(directory) / path.name
        with whole.open("w") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        whole.replace(path)


def _device(backend: str, local_rank: int) -> torch.device:
    if backend == "gloo":
        torch.set_num_threads(1)
        return torch.device("cpu")
    seen = torch.cuda.device_count()
    index = 0 if seen == 1 else local_rank  # some launchers show each process only its own GPU
    if index >= seen:
        raise Failure("MW405", f"{HOST}: local rank {local_rank} needs its own GPU, torch sees {seen}")
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def _prepare(place: Place, options: argparse.Namespace) -> Bench:
    usable = dist.is_nccl_available() and torch.cuda.device_count() > 0
    backend = ("nccl" if usable else "gloo") if options.backend == "auto" else options.backend
    options.iters = options.iters or (20 if backend == "nccl" else 5)
    options.warmup = options.warmup or (5 if backend == "nccl" else 1)
    device = _device(backend, place.local_rank)
    store = connect(place, options.timeout)
    hosts = meet(store, place, options)
    bench = Bench(Group(place.rank, place.ranks, device, DTYPES[options.dtype]), store, options, backend, hosts)
    patience = timedelta(seconds=bench.limit(options.max_bytes) + 60)  # our own limits come first: they say what hung
    store.set_timeout(patience)
    with bench.guard(2 * options.timeout, "connecting the ranks"):
        groups = dist.PrefixStore("group", store)
        dist.init_process_group(backend, store=groups, rank=place.rank, world_size=place.ranks, timeout=patience)
    return bench


def _finish(bench: Bench) -> None:
    if bench.options.output:
        write(bench.options.output, bench.document())
    if corrupt := [problem["problem"] for problem in bench.problems if "wrong_on" in problem]:
        raise Failure("MW404", f"the network corrupts data: {corrupt[0]}")
    if not bench.records:
        raise Failure("MW406", f"nothing measured: {bench.problems[0]['problem']}")
    say({"event": "done", "records": len(bench.records), "problems": len(bench.problems)})


def main(words: Sequence[str] | None = None) -> int:
    """Measure; gives the exit code."""
    try:
        options = parse(words)
        place = Place.here()
        bench = _prepare(place, options)
        if place.rank == 0:
            say({"event": "start", "ranks": place.ranks, "backend": bench.backend, "hosts": bench.hosts})
        bench.pairs() if options.pairs else bench.collectives()
        if place.rank == 0:
            _finish(bench)
    except Failure as failure:
        # Every rank says it, even when all say the same: the launcher ends the others as soon as one has exited.
        say(failure.event)
        return failure.exit_code
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    code = main()
    if code:
        os._exit(code)  # a broken process group may hang in its destructor
