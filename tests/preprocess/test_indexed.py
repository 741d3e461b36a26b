"""The dataset format: reading, describing, and finding what is broken."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from preprocess_helpers import ROOT, expected_files

from megawrap.errors import RunError
from megawrap.preprocess.indexed import header, writer
from megawrap.preprocess.indexed import verify as verification
from megawrap.preprocess.indexed.reader import Reader, inspect
from megawrap.preprocess.indexed.verify import verify
from megawrap.preprocess.indexed.writer import write_index

DOCUMENTS = [[[1, 2, 3], [4]], [], [[5, 6]], [[7], [8, 9, 10, 11]]]


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    """A sound dataset."""
    data, index = expected_files(DOCUMENTS, 8)
    (tmp_path / "d.bin").write_bytes(data)
    (tmp_path / "d.idx").write_bytes(index)
    return str(tmp_path / "d")


def test_a_sound_dataset_is_read(prefix):
    reader = Reader(prefix)
    assert (len(reader), reader.documents) == (5, 4)
    assert [reader.sequence(number).tolist() for number in range(5)] == [[1, 2, 3], [4], [5, 6], [7], [8, 9, 10, 11]]
    assert [[ids.tolist() for ids in reader.document(number)] for number in range(4)] == DOCUMENTS
    assert reader.tokens.dtype == np.uint16
    assert verify(prefix) == header.check(prefix) == []


def test_a_dataset_in_numbers(prefix):
    summary = inspect(prefix)
    assert (summary.documents, summary.sequences, summary.tokens, summary.dtype) == (4, 5, 11, "uint16")
    assert (summary.bin_bytes, summary.idx_bytes) == (22, 34 + 12 * 5 + 8 * 5)
    assert (summary.shortest, summary.median, summary.longest) == (1, 2.0, 4)


def test_an_empty_dataset_is_sound(tmp_path):
    data, index = expected_files([], 4)
    (tmp_path / "d.bin").write_bytes(data)
    (tmp_path / "d.idx").write_bytes(index)
    assert len(index) == 42
    assert verify(str(tmp_path / "d")) == []
    assert inspect(str(tmp_path / "d")).tokens == 0


def test_modes_behind_the_documents_are_allowed(prefix):
    with Path(f"{prefix}.idx").open("ab") as file:
        file.write(bytes(5))
    assert verify(prefix) == []


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_the_index_is_written_in_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(writer, "_BLOCK", block)
    lengths = [len(ids) for document in DOCUMENTS for ids in document]
    (tmp_path / "lengths").write_bytes(struct.pack("<5i", *lengths))
    (tmp_path / "ends").write_bytes(struct.pack("<4q", 2, 2, 3, 5))
    write_index(tmp_path / "idx", "<i4", tmp_path / "lengths", tmp_path / "ends")
    assert (tmp_path / "idx").read_bytes() == expected_files(DOCUMENTS, 4)[1]


def change(path: str, offset: int, value: bytes) -> None:
    with Path(path).open("r+b") as file:
        file.seek(offset)
        file.write(value)


NOT_THE_END = ", which is not where the one before it ends"
LENGTHS, POINTERS, BOUNDS = 34, 34 + 4 * 5, 34 + 12 * 5


@pytest.mark.parametrize(
    ("offset", "value", "id", "message"),
    [
        (0, b"NOTANIDX", "MW641", "{}.idx is not the index of a Megatron dataset: it does not begin as one does"),
        (
            9,
            b"\x02",
            "MW641",
            "{}.idx has a header that Megatron does not read: version 2, type code 8, 5 document boundaries",
        ),
        (
            17,
            b"\x09",
            "MW641",
            "{}.idx has a header that Megatron does not read: version 1, type code 9, 5 document boundaries",
        ),
        (17, b"\x04", "MW643", "{}.bin has 22 bytes, and its index describes 30: they are no pair"),
        (
            18,
            b"\x06",
            "MW642",
            "{}.idx has 134 bytes, and an index of 6 sequences and 4 documents has 146: it is cut off",
        ),
        (
            LENGTHS + 4,
            b"\x02",
            "MW645",
            "{}.idx: sequence 2 begins at byte 8" + NOT_THE_END,
        ),
        (LENGTHS, struct.pack("<i", -1), "MW644", "{}.idx: sequence 0 has a negative length, -1"),
        (POINTERS, b"\x01", "MW645", "{}.idx: sequence 0 begins at byte 1" + NOT_THE_END),
        (BOUNDS, b"\x01", "MW646", "{}.idx: the documents reach from 1 to 5, and there are sequences 0 to 5"),
        (BOUNDS + 32, b"\x04", "MW646", "{}.idx: the documents reach from 0 to 4, and there are sequences 0 to 5"),
        (BOUNDS + 16, b"\x00", "MW646", "{}.idx: document 2 begins before the one that precedes it"),
    ],
)
@pytest.mark.parametrize("block", [1, 1 << 20])
def test_what_is_broken_is_found(prefix, monkeypatch, block, offset, value, id, message):
    monkeypatch.setattr(verification, "_BLOCK", block)
    change(f"{prefix}.idx", offset, value)
    assert [(finding.id, finding.message) for finding in verify(prefix)] == [(id, message.replace("{}", prefix))]


def test_every_cut_is_found(prefix):
    for suffix in (".bin", ".idx"):
        whole = Path(prefix + suffix).read_bytes()
        for size in range(len(whole)):
            Path(prefix + suffix).write_bytes(whole[:size])
            assert header.check(prefix), f"{suffix} cut to {size} bytes"
        Path(prefix + suffix).write_bytes(whole)


def test_a_missing_half_is_found(prefix):
    Path(f"{prefix}.bin").unlink()
    assert [finding.message for finding in header.check(prefix)] == [f"{prefix}.bin: there is no such file"]
    Path(f"{prefix}.idx").unlink()
    with pytest.raises(RunError, match=f"^{prefix}.idx: there is no such file$"):
        Reader(prefix)


def test_the_cheap_check_does_not_import_numpy():
    code = "import sys; from megawrap.preprocess.indexed import header; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT, timeout=60).returncode == 0
