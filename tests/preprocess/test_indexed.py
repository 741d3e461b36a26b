"""The dataset format: reading, describing, and finding what is broken."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from preprocess_helpers import ROOT, expected_files
from tools_helpers import make

from megawrap.errors import RunError, errors
from megawrap.preprocess.indexed import blocks, header, writer
from megawrap.preprocess.indexed.ids import Ids, check_ids
from megawrap.preprocess.indexed.reader import Reader
from megawrap.preprocess.indexed.verify import EMPTY, verify
from megawrap.preprocess.indexed.writer import write_index

DOCUMENTS = [[[1, 2, 3], [4]], [[5, 6]], [[7], [8, 9, 10, 11]]]
NO_PAIR = "; the two are no pair, or one is not complete"
LENGTHS, POINTERS, BOUNDS, SIZE = 34, 34 + 4 * 5, 34 + 12 * 5, 34 + 12 * 5 + 8 * 4


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    """A sound dataset."""
    return make(tmp_path / "d", DOCUMENTS)


def test_a_sound_dataset_is_read(prefix):
    reader = Reader(prefix)
    assert (len(reader), reader.documents) == (5, 3)
    assert [reader.sequence(number).tolist() for number in range(5)] == [[1, 2, 3], [4], [5, 6], [7], [8, 9, 10, 11]]
    assert [[ids.tolist() for ids in reader.document(number)] for number in range(3)] == DOCUMENTS
    assert reader.tokens.dtype == np.uint16
    assert verify(prefix) == header.check(prefix) == []


def test_an_empty_dataset_is_one_finding(tmp_path):
    data, index = expected_files([], 4)
    (tmp_path / "d.bin").write_bytes(data)
    (tmp_path / "d.idx").write_bytes(index)
    assert len(index) == 42
    message = f"{tmp_path}/d holds no tokens, and Megatron cannot open an empty .bin"
    assert told(verify(str(tmp_path / "d"))) == [(EMPTY, message)]
    assert Reader(str(tmp_path / "d")).documents == 0


def test_what_is_allowed_and_good_to_know(tmp_path):
    prefix = make(tmp_path / "d", [[[1, 2]], [], [[]], [[], [3]]])
    found = verify(prefix)
    assert told(found) == [
        ("MW648", f"{prefix}: documents without sequences: 1, the first is document 1"),
        ("MW648", f"{prefix}: sequences without tokens: 2, the first is sequence 1"),
    ]
    assert errors(found) == []


def test_an_index_older_than_its_data_is_told(prefix):
    os.utime(f"{prefix}.bin", ns=(0, 10_500_000_000))
    os.utime(f"{prefix}.idx", ns=(0, 8_000_000_000))
    (found,) = verify(prefix)
    assert (found.id, found.severity) == ("MW649", "warning")
    assert found.message.startswith(f"{prefix}.idx was written 2.5 s before {prefix}.bin: ")


def test_modes_behind_the_documents_are_allowed(prefix):
    with Path(f"{prefix}.idx").open("ab") as file:
        file.write(bytes(5))
    assert verify(prefix) == []


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_the_index_is_written_in_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(writer, "_BLOCK", block)
    lengths = [len(ids) for document in DOCUMENTS for ids in document]
    (tmp_path / "lengths").write_bytes(struct.pack("<5i", *lengths))
    (tmp_path / "ends").write_bytes(struct.pack("<3q", 2, 3, 5))
    write_index(tmp_path / "idx", "<i4", tmp_path / "lengths", tmp_path / "ends")
    assert (tmp_path / "idx").read_bytes() == expected_files(DOCUMENTS, 4)[1]


def told(findings):
    return [(finding.id, finding.message) for finding in findings]


def change(path: str, offset: int, value: bytes) -> None:
    with Path(path).open("r+b") as file:
        file.seek(offset)
        file.write(value)


@pytest.mark.parametrize(
    ("offset", "value", "id", "message"),
    [
        (0, b"NOTANIDX", "MW641", "{}.idx is not the index of a Megatron dataset: it does not begin as one does"),
        (9, b"\x02", "MW641", "{}.idx, byte 9: version 2, and Megatron reads version 1"),
        (17, b"\x09", "MW641", "{}.idx, byte 17: 9 is the code of no type, and 1 to 8 are"),
        (26, b"\x00", "MW641", "{}.idx, byte 26: no document boundary, and even a dataset without documents has one"),
        (17, b"\x04", "MW645", "{}.idx, byte 62: sequence 1 begins at byte 6, and the one before it ends at 12"),
        (
            18,
            b"\x06",
            "MW642",
            "{}.idx has 126 bytes, and an index of 6 sequences and 3 documents has 138: it is cut off in the "
            "documents, document 2",
        ),
        (
            LENGTHS + 4,
            b"\x02",
            "MW645",
            "{}.idx, byte 70: sequence 2 begins at byte 8, and the one before it ends at 10",
        ),
        (
            LENGTHS + 16,
            b"\x05",
            "MW643",
            "{}.bin has 22 bytes, and its index describes 24: 2 are missing" + NO_PAIR,
        ),
        (
            LENGTHS + 16,
            b"\x03",
            "MW643",
            "{}.bin has 22 bytes, and its index describes 20: 2 are too many" + NO_PAIR,
        ),
        (LENGTHS, struct.pack("<i", -1), "MW644", "{}.idx, byte 34: sequence 0 has a negative length, -1"),
        (LENGTHS + 12, struct.pack("<i", -7), "MW644", "{}.idx, byte 46: sequence 3 has a negative length, -7"),
        (POINTERS, b"\x01", "MW645", "{}.idx, byte 54: sequence 0 begins at byte 1, and the one before it ends at 0"),
        (
            POINTERS + 32 + 4,
            b"\xff\xff\xff\xff",
            "MW645",
            "{}.idx, byte 86: sequence 4 begins at byte -4294967282, and the one before it ends at 14 (the same in 32 "
            "bits: whatever wrote the offsets had no more)",
        ),
        (BOUNDS, b"\x01", "MW646", "{}.idx, byte 94: the first document begins at sequence 1 and not at 0"),
        (
            BOUNDS + 24,
            b"\x04",
            "MW646",
            "{}.idx, byte 118: the documents end at sequence 4, and there are 5 sequences",
        ),
        (
            BOUNDS + 16,
            b"\x01",
            "MW646",
            "{}.idx, byte 110: document 2 begins at sequence 1, before the one that precedes it (2)",
        ),
    ],
)
@pytest.mark.parametrize("block", [1, 2, 1 << 18])
def test_what_is_broken_is_found(prefix, monkeypatch, block, offset, value, id, message):
    monkeypatch.setattr(blocks, "BLOCK", block)
    change(f"{prefix}.idx", offset, value)
    assert told(verify(prefix)) == [(id, message.replace("{}", prefix))]


def test_every_byte_of_an_index_matters(prefix):
    """Whatever byte is changed, it is found: there is no room in the format for what means nothing."""
    whole = Path(f"{prefix}.idx").read_bytes()
    for at in range(SIZE):
        Path(f"{prefix}.idx").write_bytes(whole[:at] + bytes([whole[at] ^ 0x80]) + whole[at + 1 :])
        assert errors(verify(prefix)), f"byte {at}"


def test_bytes_behind_the_end_are_told(prefix):
    for suffix, message in (
        (".idx", "3 bytes stand behind its end, and modes of sequences are 5"),
        (".bin", "too many"),
    ):
        whole = Path(prefix + suffix).read_bytes()
        Path(prefix + suffix).write_bytes(whole + bytes(3))
        (found,) = verify(prefix)
        assert message in found.message
        Path(prefix + suffix).write_bytes(whole)


def test_all_kinds_of_faults_are_told_at_once(prefix):
    change(f"{prefix}.idx", LENGTHS + 8, struct.pack("<i", -2))
    change(f"{prefix}.idx", BOUNDS + 8, b"\x05")
    assert [finding.id for finding in verify(prefix)] == ["MW644", "MW646"]


def test_every_cut_is_found(prefix):
    for suffix in (".bin", ".idx"):
        whole = Path(prefix + suffix).read_bytes()
        for size in range(len(whole)):
            Path(prefix + suffix).write_bytes(whole[:size])
            assert header.check(prefix), f"{suffix} cut to {size} bytes"
            assert errors(verify(prefix)), f"{suffix} cut to {size} bytes"
        Path(prefix + suffix).write_bytes(whole)


def test_a_missing_half_is_found(prefix):
    Path(f"{prefix}.bin").unlink()
    missing = [("MW640", f"{prefix}.bin: there is no such file")]
    assert told(header.check(prefix)) == told(verify(prefix)) == missing
    Path(f"{prefix}.idx").unlink()
    with pytest.raises(RunError, match=f"^{prefix}.idx: there is no such file$"):
        Reader(prefix)


def test_the_cheap_check_does_not_import_numpy():
    code = "import sys; from megawrap.preprocess.indexed import header; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT, timeout=60).returncode == 0


def test_more_tokens_than_32_bits_count(tmp_path):
    """Two files that are holes: 2**31 + 10 tokens of one byte, the last of them no id."""
    prefix, lengths = str(tmp_path / "d"), [1 << 30, 1 << 30, 10]
    with Path(f"{prefix}.bin").open("wb") as file:
        file.seek(sum(lengths) - 1)
        file.write(b"\x64")
    index = header.Header("<u1", 3, 3).pack() + struct.pack("<3i", *lengths)
    Path(f"{prefix}.idx").write_bytes(index + struct.pack("<3q", 0, 1 << 30, 1 << 31) + struct.pack("<4q", 0, 1, 2, 3))
    assert verify(prefix) == []
    found, _ = header.read(prefix)
    assert found is not None
    assert check_ids(prefix, found, 101).highest == 100
    message = (
        f"{prefix}.bin, byte 2147483657 (document 2, sequence 2, token 9): id 100 is outside the vocabulary of 100"
    )
    assert told(check_ids(prefix, found, 100).findings) == [("MW660", message)]


@pytest.mark.parametrize(("code", "dtype"), [(8, "<u2"), (4, "<i4"), (5, "<i8"), (3, "<i2"), (2, "<i1"), (1, "<u1")])
def test_ids_outside_the_vocabulary_are_found_with_their_place(prefix, monkeypatch, code, dtype):
    monkeypatch.setattr(blocks, "BLOCK", 3)
    ids = np.arange(1, 12).astype(dtype)
    Path(f"{prefix}.bin").write_bytes(ids.tobytes())
    index = header.Header(dtype, 5, 3)
    assert check_ids(prefix, index, 12) == Ids(11, ())
    assert check_ids(prefix, index, None) == Ids(11, ())
    lengths = np.array([3, 1, 2, 1, 4])
    pointers = (np.cumsum(lengths) - lengths) * index.itemsize
    Path(f"{prefix}.idx").write_bytes(
        index.pack() + lengths.astype("<i4").tobytes() + pointers.tobytes() + struct.pack("<4q", 0, 2, 3, 5)
    )
    assert verify(prefix) == []
    place = f"{prefix}.bin, byte {8 * index.itemsize} (document 2, sequence 4, token 1)"
    found = check_ids(prefix, index, 9)
    assert told(found.findings) == [("MW660", f"{place}: id 9 is outside the vocabulary of 9; it is the first of 3")]
    assert found.highest == 8
    if dtype.startswith("<i"):
        ids[8] = -2
        Path(f"{prefix}.bin").write_bytes(ids.tobytes())
        assert told(check_ids(prefix, index, None).findings) == [("MW660", f"{place}: id -2 is negative")]


def test_numbers_that_are_no_integers_are_no_ids(prefix):
    change(f"{prefix}.idx", 17, b"\x06")
    found, _ = header.read(prefix)
    assert found is not None
    message = f"{prefix}.idx, byte 17: the ids are stored as float64, and an id is an integer"
    assert check_ids(prefix, found, 10) == Ids(None, (header.broken("MW660", message),))


def test_a_file_that_shrinks_while_it_is_read_is_an_error(prefix):
    with pytest.raises(OSError, match=re.escape("d.bin became shorter")):
        list(blocks.blocks(Path(f"{prefix}.bin"), "<u2", 12))
