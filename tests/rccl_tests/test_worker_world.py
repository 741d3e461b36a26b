"""The worker in real worlds of gloo ranks."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from megawrap.rccl_tests.records import BandwidthRecord, busbw_factor, read_events, read_measurement
from megawrap.rccl_tests.verdict import judge

pytest.importorskip("torch")

from megawrap.rccl_tests import worker

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

EVERY = ["all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv", "broadcast"]


def torchrun(tmp_path, ranks, *words):
    """The worker as a node without megawrap has it: one file, elsewhere, nothing on the path."""
    alone = tmp_path / "alone.py"
    alone.write_bytes(Path(worker.__file__).read_bytes())
    agent = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [*agent, str(alone), "--backend", "gloo", *words]
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_every_collective(tmp_path):
    output = tmp_path / "result.json"
    sizes = ["--min-bytes", "64K", "--max-bytes", "256K", "--output", str(output)]
    ended = torchrun(tmp_path, 2, "--collectives", ",".join(EVERY), *sizes)
    assert ended.returncode == 0, ended.stderr
    start, *events, done = read_events(ended.stdout.splitlines())
    assert start == {"event": "start", "ranks": 2, "backend": "gloo", "hosts": [socket.gethostname()] * 2}
    assert done == {"event": "done", "records": 12, "problems": 0}
    measurement = read_measurement(output)
    assert tuple(map(BandwidthRecord.from_dict, events)) == measurement.records
    assert measurement.sizes == (65536, 262144)
    assert measurement.hosts == (socket.gethostname(),) * 2
    for record in measurement.records:
        assert (record.source, record.group, record.wrong, record.ranks) == ("torch-gloo", "world", 0, 2)
        assert record.bytes == record.count * 4
        assert record.algbw == pytest.approx(record.bytes / record.seconds / 1e9)
        assert record.busbw == pytest.approx(record.algbw * busbw_factor(record.collective, 2))
    assert [record.collective for record in measurement.records[::2]] == EVERY
    assert judge(measurement).word == "measured"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _rank(rank, ranks, port, words, said):
    place = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": 0, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    with said.open("w") as file, contextlib.redirect_stdout(file):
        code = worker.main(["--backend", "gloo", *words])
    os._exit(code)


def world(tmp_path, present, ranks, *words, port=None):
    """Exit codes and events of the ranks that are present: processes without the seconds that importing torch takes."""
    port, fork = port or free_port(), multiprocessing.get_context("fork")
    said = [tmp_path / f"process{number}.jsonl" for number in range(len(present))]
    started = [
        fork.Process(target=_rank, args=(rank, ranks, port, words, file))
        for rank, file in zip(present, said, strict=True)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(timeout=120)
        process.kill()
        process.join()
    return (
        port,
        [process.exitcode for process in started],
        [read_events(file.read_text().splitlines()) for file in said],
    )


def test_pairs_of_three_ranks(tmp_path):
    output = tmp_path / "result.json"
    words = ["--pairs", "--max-bytes", "64K", "--dtype", "bfloat16", "--output", str(output)]
    _, codes, _ = world(tmp_path, range(3), 3, *words)
    assert codes == [0, 0, 0]
    result = json.loads(output.read_text())
    ways = {record.group: record for record in read_measurement(output).records}
    assert set(ways) == {"0->1", "0->2", "1->0", "1->2", "2->0", "2->1"}
    assert all((way.wrong, way.ranks, way.count) == (0, 2, 32768) for way in ways.values())
    assert [result["matrix"][rank][rank] for rank in range(3)] == [None] * 3
    assert result["matrix"][2][1] == ways["2->1"].busbw


def test_ranks_that_never_come_are_named_with_their_hosts(tmp_path):
    output = tmp_path / "result.json"
    words = ["--timeout", "3", "--hosts", "node-a,node-b,node-c", "--processes-per-host", "2", "--output", str(output)]
    port, codes, (first, second) = world(tmp_path, [0, 2], 6, *words)
    assert codes == [3, 3]
    (event,) = first
    who = "rank 1 on node-a, rank 3 on node-b, ranks 4-5 on node-c"
    message = f"4 of 6 ranks did not come to 127.0.0.1:{port} within 3 s: {who}"
    assert event["findings"] == [{"id": "MW403", "message": message}]
    assert event["absent"][2] == {"host": "node-c", "ranks": [4, 5]}
    assert second == [], "rank 0 speaks for all who came"
    assert not output.exists()


def test_a_rank_that_was_started_twice(tmp_path):
    _, codes, (_, *others) = world(tmp_path, [0, 1, 1], 3, "--timeout", "3")
    assert codes == [3, 3, 3]
    host = socket.gethostname()
    (event,) = [event for events in others for event in events]
    assert event["findings"][0]["message"] == f"rank 1 was started twice, the second time on {host}"


def test_a_meeting_point_that_nobody_opens(tmp_path):
    port, codes, ((event,),) = world(tmp_path, [1], 2, "--timeout", "1")
    assert codes == [3]
    (finding,) = event["findings"]
    begins = f"rank 1 on {socket.gethostname()} cannot reach, within 1 s, the meeting point 127.0.0.1:{port}: "
    assert finding["id"] == "MW403"
    assert finding["message"].startswith(begins)


def test_a_first_rank_that_never_comes_to_the_store_of_torchrun(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    store = worker.dist.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False)
    _, codes, ((event,),) = world(tmp_path, [1], 2, "--timeout", "1", port=store.port)
    assert codes == [3]
    assert event["absent"] == [{"host": None, "ranks": [0]}]
    assert event["findings"][0]["message"].startswith("rank 0 did not come to the meeting point, or died there: ")


def test_corrupt_data_ends_with_3_and_the_file_says_where(tmp_path, monkeypatch):
    def corrupt(group, count):
        honest = worker._all_reduce(group, count)
        buffer = honest.receives[0].buffer

        def run():
            honest.run()
            if group.rank == 1:
                buffer[5] += 1

        return worker.Operation(run, honest.sends, honest.receives)

    monkeypatch.setitem(worker.COLLECTIVES, "all_reduce", worker.Collective(corrupt, lambda n: 1, sharded=False))
    output = tmp_path / "result.json"
    _, codes, (events, _) = world(tmp_path, range(2), 2, "--max-bytes", "1M", "--output", str(output))
    assert codes == [3, 0]
    text = "1 wrong elements, received by rank 1 on " + socket.gethostname()
    assert events[-1]["findings"] == [{"id": "MW404", "message": f"the network corrupts data: {text}"}]
    measurement = read_measurement(output)
    assert [record.wrong for record in measurement.records] == [1]
    assert [problem["problem"] for problem in measurement.problems] == [text]
    assert judge(measurement).word == "fail"
