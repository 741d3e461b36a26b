"""Looking at the input file: what is refused, and where chunks begin."""

from __future__ import annotations

import hashlib
import os

import pytest

from megawrap.errors import ConfigError, RunError
from megawrap.preprocess import chunks
from megawrap.preprocess.chunks import ranges
from megawrap.preprocess.digest import Digest
from megawrap.preprocess.source import examine


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{} is empty: there is nothing to tokenize"),
        (b"\xef\xbb\xbf", "{} is empty: there is nothing to tokenize"),
        (b"\xfd7zXZ\x00", "{} is xz data, and JSON lines in UTF-8 are needed; unpack it first: xz -dk {}"),
        (
            '{"text": "x"}\n'.encode("utf-16"),
            "{} is UTF-16 text, and JSON lines in UTF-8 are needed; convert it: iconv -f UTF-16 -t UTF-8 {}",
        ),
    ],
)
def test_what_is_plainly_no_json_lines_is_refused(tmp_path, content, message):
    file = tmp_path / "in"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        examine(file)
    assert str(refused.value) == message.replace("{}", str(file))


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=f"^{tmp_path}/none: there is no such file$"):
        examine(tmp_path / "none")
    with pytest.raises(ConfigError, match=f"^{tmp_path} is not a regular file$"):
        examine(tmp_path)
    with pytest.raises(ConfigError, match=r"cannot be read: Not a directory$"):
        (tmp_path / "file").touch()
        examine(tmp_path / "file" / "below")


def test_a_byte_order_mark_is_stepped_over(tmp_path):
    file = tmp_path / "in"
    file.write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    assert list(ranges(examine(file), 1)) == [(3, 7), (7, 11)]


def test_a_chunk_ends_where_a_line_begins_just_there(tmp_path):
    file = tmp_path / "in"
    file.write_bytes(b"one\ntwo\n")
    assert list(ranges(examine(file), 4)) == [(0, 4), (4, 8)]
    assert list(ranges(examine(file), 5)) == [(0, 8)]


@pytest.mark.parametrize("ending", [b"", b"\n"])
@pytest.mark.parametrize("target", [1, 2, 3, 5, 8, 1000])
def test_chunks_are_whole_lines_and_cover_the_file(tmp_path, monkeypatch, target, ending):
    monkeypatch.setattr(chunks, "_BLOCK", 4)  # lines must be found across reads
    data = b"\n".join([b"a", b"", b"bcdefghijklmn", b"op", b"", b"", b"qrstuvw"]) + ending
    file = tmp_path / "in"
    file.write_bytes(data)
    found = list(ranges(examine(file), target))
    assert [start for start, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == len(data)
    assert all(start == 0 or data[start - 1 : start] == b"\n" for start, _ in found)
    assert all(end - start >= min(target, len(data) - start) for start, end in found)


def test_a_line_longer_than_many_chunks_is_searched_once(tmp_path, monkeypatch):
    file = tmp_path / "in"
    file.write_bytes(b"x" * 100_000 + b"\n" + b"y\n" * 10)
    read = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, at: read.append(size) or pread(file, size, at))
    assert next(ranges(examine(file), 16)) == (0, 100_001)
    assert sum(read) <= chunks._BLOCK


def test_the_digest_is_the_sha256_of_the_whole_file(tmp_path):
    file = tmp_path / "in"
    file.write_bytes(b"abc" * 1_000_000)
    seen = examine(file)
    with Digest([seen]) as digest:
        assert digest.result() == [hashlib.sha256(file.read_bytes()).hexdigest()]
    file.rename(tmp_path / "other")
    with Digest([seen]) as digest, pytest.raises(RunError, match="in cannot be read: No such file"):
        digest.result()


def test_a_change_is_noticed(tmp_path):
    file = tmp_path / "in"
    file.write_bytes(b"{}\n")
    seen = examine(file)
    assert seen.unchanged()
    file.write_bytes(b"{}\n{}\n")
    assert not seen.unchanged()
    file.unlink()
    assert not seen.unchanged()
