"""Units, factors, and reading what the worker wrote."""

from __future__ import annotations

import json

import pytest

from megawrap.errors import ConfigError, PreflightError
from megawrap.rccl_tests.records import (
    BandwidthRecord,
    Measurement,
    busbw_factor,
    format_bytes,
    parse_bytes,
    read_events,
    read_measurement,
)


@pytest.mark.parametrize(
    ("collective", "ranks", "factor"),
    [
        ("all_reduce", 2, 1.0),
        ("all_reduce", 8, 1.75),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 8, 0.875),
        ("alltoall", 16, 0.9375),
        ("broadcast", 8, 1.0),
        ("sendrecv", 8, 1.0),
        ("all_reduce", 1, 0.0),
    ],
)
def test_busbw_factor(collective, ranks, factor):
    assert busbw_factor(collective, ranks) == factor


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("1", 1), ("64M", 64 << 20), ("8g", 8 << 30), ("1GiB", 1 << 30), ("4KB", 4096), ("2T", 2 << 40)],
)
def test_sizes_are_binary(text, nbytes):
    assert parse_bytes(text) == nbytes


@pytest.mark.parametrize("text", ["", "0", "0M", "-1M", "1.5G", "1 M", "64X", "M"])
def test_what_is_no_size(text):
    with pytest.raises(ConfigError) as caught:
        parse_bytes(text)
    (finding,) = caught.value.findings
    assert finding.id == "MW402"
    assert finding.message == f"{text!r} is not a size such as 1M, 64M or 8G"


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(67108864, "64M"), (1000, "1000"), (1 << 30, "1G"), (3 << 29, "1536M"), (0, "0"), (1025, "1025")],
)
def test_format_bytes(nbytes, text):
    assert format_bytes(nbytes) == text
    assert not nbytes or parse_bytes(text) == nbytes


def test_a_record_survives_json(record):
    one = record(wrong=None)
    assert BandwidthRecord.from_dict(json.loads(json.dumps(one.as_dict()))) == one


def test_events_among_the_words_of_the_ranks(record):
    event = {"event": "record", **record().as_dict()}
    lines = ["W1129 warning", json.dumps(event), '{"event": "rec', "{}", '{"event": "done", "records": 1}']
    assert read_events(lines) == [event, {"event": "done", "records": 1}]
    assert BandwidthRecord.from_dict(read_events(lines)[0]) == record()


def test_read_measurement(tmp_path, record):
    path = tmp_path / "preflight.json"
    meta = {"hosts": ["a", "a"], "collectives": ["all_reduce"], "sizes": [8 << 30], "torch": "2.14"}
    path.write_text(json.dumps({"meta": meta, "records": [record().as_dict()], "problems": []}))
    expected = Measurement(records=(record(),), collectives=("all_reduce",), sizes=(8 << 30,), hosts=("a", "a"))
    assert read_measurement(path) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file or directory"),
        ("{}", "not written by worker.py (KeyError: 'meta')"),
        ("[]", "not written by worker.py (TypeError: list indices must be integers or slices, not str)"),
        ("", "not written by worker.py (JSONDecodeError: Expecting value: line 1 column 1 (char 0))"),
    ],
)
def test_no_measurement(tmp_path, text, reason):
    path = tmp_path / "preflight.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PreflightError) as caught:
        read_measurement(path)
    (finding,) = caught.value.findings
    assert (finding.id, finding.message) == ("MW407", f"no bandwidth result in {path}: {reason}")
