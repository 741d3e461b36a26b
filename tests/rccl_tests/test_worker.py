"""The pieces of the worker: patterns, rounds, sizes, words. Needs torch, starts no process."""

from __future__ import annotations

import itertools
import json

import pytest

torch = pytest.importorskip("torch")

from megawrap.rccl_tests import records, worker  # noqa: E402 (after the check for torch)


@pytest.mark.parametrize("ranks", [2, 3, 8, 1440])
def test_the_factors_are_those_of_the_records(ranks):
    for name, collective in worker.COLLECTIVES.items():
        assert collective.factor(ranks) == records.busbw_factor(name, ranks)


@pytest.mark.parametrize("text", ["1", "64M", "8g", "1GiB", "4KB", "2T"])
def test_sizes_are_read_as_in_the_records(text):
    assert worker.parse_bytes(text) == records.parse_bytes(text)


def block(dtype=torch.float32, count=5000, offset=0):
    made = worker.Block(torch.zeros(count, dtype=dtype), worker.signature(3), offset)
    made.put()
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("count", [1, 1020, 1021, 5000])
def test_right_data_is_right(dtype, count):
    assert block(dtype, count).wrong() == 0


@pytest.mark.parametrize("place", [0, 1020, 1021, 4999])
def test_one_flipped_element_is_counted(place):
    corrupt = block()
    corrupt.buffer[place] += 1
    assert corrupt.wrong() == 1


def test_not_a_number_is_wrong():
    corrupt = block()
    corrupt.buffer[7] = float("nan")
    assert corrupt.wrong() == 1


def test_lost_data_is_wrong():
    corrupt = block()
    corrupt.buffer[1000:2000] = 0
    assert corrupt.wrong() >= 990  # few elements of the pattern are 0


@pytest.mark.parametrize("shift", [1, 64, 1024, 4096])
def test_displaced_data_is_wrong(shift):
    displaced = block(count=8192)
    displaced.buffer.copy_(displaced.buffer.roll(shift))
    assert displaced.wrong() > 8000


def test_a_part_of_a_buffer_continues_the_pattern():
    whole = block(count=6000)
    part = worker.Block(whole.buffer[2500:], whole.tile, offset=2500)
    assert part.wrong() == 0


@pytest.mark.parametrize("ranks", [2, 3, 32, 33, 100, 2000])
def test_the_sum_is_that_of_all_contributions_and_exact_in_bfloat16(ranks):
    contributions = [worker.contribution(rank, ranks) for rank in range(ranks)]
    assert torch.equal(torch.stack(contributions).sum(0), worker.total(ranks))
    assert all(contribution.any() for contribution in contributions), "every rank takes part somewhere"
    assert worker.total(ranks).max() <= 96
    in_bfloat16 = sum(contribution.to(torch.bfloat16) for contribution in contributions)
    assert torch.equal(in_bfloat16.long(), worker.total(ranks))


def test_the_contribution_of_a_missing_rank_is_missed():
    without = worker.total(8) - worker.contribution(5, 8)
    assert worker.Block(without.float(), worker.total(8)).wrong() == worker.TILE


def test_senders_differ():
    tiles = [tuple(worker.signature(seed).tolist()) for seed in range(64)]
    assert len(set(tiles)) == len(tiles)


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8])
def test_rounds_of_disjoint_pairs_cover_every_pair_once(ranks):
    rounds = worker.pair_rounds(ranks)
    for pairs in rounds:
        busy = list(itertools.chain(*pairs))
        assert len(busy) == len(set(busy))
    met = [tuple(sorted(pair)) for pair in itertools.chain(*rounds)]
    assert sorted(met) == list(itertools.combinations(range(ranks), 2))
    assert len(rounds) == ranks - 1 + ranks % 2


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([3], "rank 3"), ([0, 8, 9, 10], "ranks 0, 8-10"), ([5, 4], "ranks 4-5"), ([1, 3], "ranks 1, 3")],
)
def test_ranks_text(ranks, text):
    assert worker.ranks_text(ranks) == text


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ("--min-bytes 1M --max-bytes 16M", [1 << 20, 4 << 20, 16 << 20]),
        ("--min-bytes 1G --max-bytes 8G", [1 << 30, 4 << 30]),
        ("--min-bytes 8G --max-bytes 8G", [8 << 30]),
        ("--pairs --max-bytes 64K", [64 << 10]),
    ],
)
def test_sizes(words, sizes):
    assert worker.sizes(worker.parse(words.split())) == sizes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--max-bytes 64X", "argument --max-bytes: '64X' is not a size such as 1M, 64M or 8G"),
        ("--min-bytes 2M --max-bytes 1M", "--min-bytes 2097152 is above --max-bytes 1048576"),
        ("--factor 1", "--factor must be at least 2"),
        ("--iters 0", "argument --iters: '0' is not a whole number above 0"),
        ("--verbose", "unrecognized arguments: --verbose"),
        (
            "--collectives all_reduce,all_red",
            "argument --collectives: no collective 'all_red'; there are all_reduce, all_gather, reduce_scatter, "
            "alltoall, sendrecv, broadcast",
        ),
    ],
)
def test_bad_words(words, message, capsys):
    assert worker.main(words.split()) == 2
    (event,) = records.read_events(capsys.readouterr().out.splitlines())
    assert event == {"event": "error", "findings": [{"id": "MW402", "message": f"worker.py: {message}"}]}


def test_bad_words_are_said_by_every_rank(monkeypatch, capsys):
    """The first to exit may be any: torchrun ends the others before they have spoken."""
    monkeypatch.setenv("RANK", "1")
    assert worker.main(["--factor", "1"]) == 2
    assert '"MW402"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "worker.py runs under torchrun: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT not set"),
        (
            {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"},
            "nothing to measure: the world has one rank",
        ),
        (
            {"RANK": "zero", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "ib0"},
            "worker.py: not a whole number: RANK='zero', MASTER_PORT='ib0'",
        ),
    ],
)
def test_bad_environment(environment, message, monkeypatch, capsys):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert worker.main([]) == 2
    (event,) = records.read_events(capsys.readouterr().out.splitlines())
    assert event["findings"] == [{"id": "MW402", "message": message}]


def test_a_file_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "new" / "result.json"
    worker.write(path, {"records": []})
    with pytest.raises(TypeError):
        worker.write(path, {"records": object()})
    assert json.loads(path.read_text()) == {"records": []}
    assert [entry.name for entry in path.parent.iterdir()] == ["result.json"]


class Store(dict):
    """What the worker uses of torch's store, for a world that is one process."""

    def add(self, key, amount):
        self[key] = self.get(key, 0) + amount
        return self[key]

    def set(self, key, value):
        self[key] = value


@pytest.fixture
def bench():
    group = worker.Group(0, 2, torch.device("cpu"), torch.float32)
    options = worker.parse(["--max-bytes", "1M", "--iters", "3", "--warmup", "1", "--timeout", "1"])
    return worker.Bench(group, Store(), options, "gloo", ["host-a", "host-b"])


def test_the_slowest_rank_decides_and_the_corrupted_one_is_named(bench, capsys):
    results = {0: {"seconds": 0.001, "wrong": 0}, 1: {"seconds": 0.002, "wrong": 4}}
    bench._record("all_gather", "world", 262144, results, factor=0.5)
    record, problem = records.read_events(capsys.readouterr().out.splitlines())
    read = records.BandwidthRecord.from_dict(record)
    assert (read.seconds, read.bytes, read.wrong, read.ranks) == (0.002, 1 << 20, 4, 2)
    assert (read.algbw, read.busbw) == pytest.approx((0.524288, 0.262144))
    assert problem["problem"] == "4 wrong elements, received by rank 1 on host-b"
    with pytest.raises(worker.Failure, match="the network corrupts data: 4 wrong elements") as caught:
        worker._finish(bench)
    assert caught.value.exit_code == 3


def test_unsupported_is_a_problem_and_no_number(bench, monkeypatch, capsys):
    def refuse(group, count):
        raise RuntimeError("ProcessGroupGloo does not support reduce_scatter")

    monkeypatch.setitem(worker.COLLECTIVES, "all_reduce", worker.Collective(refuse))
    bench.collectives()
    assert bench.records == []
    text = "unsupported by gloo of this torch: ProcessGroupGloo does not support reduce_scatter"
    assert [problem["problem"] for problem in bench.problems] == [text]
    with pytest.raises(worker.Failure, match="nothing measured: unsupported by gloo"):
        worker._finish(bench)


def test_a_broken_connection_says_who_did_what(bench, monkeypatch):
    def breaks(group, count):
        raise RuntimeError("Connection closed by peer [10.77.0.11]:4242\nC++ stack")

    monkeypatch.setitem(worker.COLLECTIVES, "all_reduce", worker.Collective(breaks))
    with pytest.raises(worker.Failure) as caught:
        bench.collectives()
    text = "all_reduce of 1048576 bytes failed: Connection closed by peer [10.77.0.11]:4242"
    assert str(caught.value) == f"rank 0 on {worker.HOST}: {text}"


def test_events_time_an_operation(monkeypatch):
    """No GPU here: the events are stand-ins, one millisecond apart, and all must have been recorded in order."""
    clock = itertools.count()

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = next(clock)

        def elapsed_time(self, end):
            return float(end.at - self.at)

    monkeypatch.setattr(worker.torch.cuda, "Event", Event)
    monkeypatch.setattr(worker.torch.cuda, "synchronize", lambda: None)
    assert worker.time_on_gpu(lambda: next(clock), 3) == [0.002, 0.002, 0.002]


@pytest.mark.parametrize(("seen", "local_rank", "index"), [(8, 3, 3), (1, 3, 0)])
def test_the_gpu_of_a_rank(monkeypatch, seen, local_rank, index):
    chosen = []
    monkeypatch.setattr(worker.torch.cuda, "device_count", lambda: seen)
    monkeypatch.setattr(worker.torch.cuda, "set_device", chosen.append)
    assert worker._device("nccl", local_rank) == torch.device("cuda", index)
    assert chosen == [index]


@pytest.mark.parametrize("seen", [0, 2])
def test_a_rank_without_a_gpu(monkeypatch, seen):
    monkeypatch.setattr(worker.torch.cuda, "device_count", lambda: seen)
    message = f"{worker.HOST}: local rank 3 needs its own GPU, torch sees {seen}"
    with pytest.raises(worker.Failure, match=message):
        worker._device("nccl", 3)
