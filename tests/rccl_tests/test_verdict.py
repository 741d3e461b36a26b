"""Marks, and what is said of a measurement held against them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import megawrap.hardware
from megawrap.rccl_tests.expectations import expectation
from megawrap.rccl_tests.verdict import judge

G = 1 << 30


def told(verdict):
    return [(finding.id, finding.severity, finding.message) for finding in verdict.findings]


@pytest.mark.parametrize(
    ("gpu", "count", "nodes", "floor"),
    [
        ("mi300x", 8, 1, 304),
        ("mi355x", 8, 1, 350),
        ("mi300x", 8, 4, 304),
        ("h100", 8, 1, 460),
        ("h100", 8, 2, 400),
        ("mi210", 4, 1, 30),
    ],
)
def test_published_floors(gpu, count, nodes, floor):
    assert expectation(gpu, count, nodes).floor == floor


@pytest.mark.parametrize(
    ("gpu", "count", "nodes"), [("mi300x", 2, 1), ("mi300x", 4, 2), ("mi300x", 8, 9), ("cpu", 8, 1), ("b200", 8, 1)]
)
def test_no_mark_for_part_of_a_node_nor_for_what_nobody_published(gpu, count, nodes):
    assert expectation(gpu, count, nodes) is None


def test_every_mark_names_its_source_and_a_known_gpu():
    table = Path(megawrap.hardware.__file__).with_name("gpus.json")
    known = {row["id"] for row in json.loads(table.read_text())}
    rows = json.loads(Path(__file__).parents[2].joinpath("rccl_tests", "expectations.json").read_text())
    assert all(row["source"] and row["gpu"] in known for row in rows)
    assert len({(row["gpu"], row["gpus_per_node"], tuple(row["nodes"])) for row in rows}) == len(rows)


def test_pass(record, measured):
    verdict = judge(measured(record(G, 314.7), record(8 * G, 318.0)), expectation("mi300x", 8, 1))
    assert (verdict.word, verdict.peak_busbw, told(verdict)) == ("pass", 318.0, [])
    assert verdict.says.startswith("busbw 314.7 GB/s at 1G, pass mark 288.8 (ROCm/system-acceptance-docs")


def test_below_the_floor(record, measured):
    verdict = judge(measured(record(8 * G, 303.9)), expectation("mi300x", 8, 1))
    assert verdict.word == "fail"
    source = "ROCm/system-acceptance-docs docs/gpus/mi300x.md; rocm.blogs.amd.com mi300x-rccl-xgmi"
    message = f"all_reduce is slow: busbw 303.9 GB/s at 8G, pass mark 304.0 ({source})"
    assert told(verdict) == [("MW409", "error", message)]


def test_one_slow_size_is_an_outlier(record, measured):
    verdict = judge(measured(record(2 * G, 235.6), record(8 * G, 367.0)), expectation("mi350x", 8, 1))
    assert verdict.word == "pass"


@pytest.mark.parametrize(("nics", "severity"), [(None, "warning"), ("8x200G", "warning"), ("8x400G", "error")])
def test_between_nodes_the_nics_must_be_known(record, measured, nics, severity):
    verdict = judge(measured(record(8 * G, 180.0, ranks=16)), expectation("mi300x", 8, 2), nics)
    assert [finding.severity for finding in verdict.findings] == [severity]
    assert "pass mark 304.0 with 8x400G a node" in verdict.says


def test_between_floor_and_typical_is_a_warning(record, measured):
    verdict = judge(measured(record(8 * G, 386.5, ranks=64)), expectation("h100", 8, 8), "8x400G")
    assert (verdict.word, verdict.findings[0].severity) == ("warn", "warning")


def test_small_messages_are_not_held_against_the_mark(record, measured):
    verdict = judge(measured(record(128 << 20, 150.0)), expectation("mi300x", 8, 1))
    assert verdict.word == "measured"
    assert verdict.says == "measured, but no all_reduce of 512M or more to hold against the pass mark"


def test_only_the_world_is_compared(record, measured):
    pair = record(8 * G, 47.0, group="0->1", collective="one_way", ranks=2)
    verdict = judge(measured(pair, collectives=("one_way",)), expectation("mi300x", 8, 1))
    assert (verdict.word, verdict.peak_busbw) == ("measured", 47.0)


def test_without_expectation(record, measured):
    verdict = judge(measured(record(1 << 20, 0.4, ranks=2)))
    assert (verdict.word, verdict.says, verdict.peak_busbw) == ("measured", "measured, no expectation", 0.4)


def test_wrong_data_always_fails(record, measured):
    verdict = judge(measured(record(8 * G, 318.0, wrong=3)), expectation("mi300x", 8, 1))
    assert verdict.word == "fail"
    message = "the network corrupts data: all_reduce of 8G (world) gave 3 wrong elements"
    assert told(verdict) == [("MW404", "error", message)]


def test_a_missing_size(record, measured):
    verdict = judge(measured(record(G), sizes=(G, 4 * G)))
    assert verdict.word == "fail"
    assert told(verdict) == [("MW406", "error", "all_reduce of 4G was asked for and not measured")]


def test_a_size_rounded_to_the_ranks_is_there(record, measured):
    rounded = record(4 * (12 * (G // 48)), collective="all_gather", ranks=12)
    assert rounded.bytes < G
    assert judge(measured(rounded, collectives=("all_gather",), sizes=(G,))).findings == ()


def test_an_unsupported_collective_is_never_a_silent_pass(record, measured):
    problem = {"collective": "alltoall", "bytes": G, "problem": "unsupported by gloo of this torch: no alltoall"}
    verdict = judge(measured(record(G), collectives=("all_reduce", "alltoall"), problems=(problem,)))
    assert verdict.word == "warn"
    message = "alltoall of 1G was not measured: unsupported by gloo of this torch: no alltoall"
    assert told(verdict) == [("MW408", "warning", message)]


def test_nothing_measured(measured):
    verdict = judge(measured())
    assert (verdict.word, verdict.peak_busbw, verdict.says) == ("unknown", None, "not measured")
    assert told(verdict) == [("MW406", "error", "nothing was measured")]
