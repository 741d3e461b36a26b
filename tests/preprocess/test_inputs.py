"""Every form of input gives the bytes that its plain text gives."""

from __future__ import annotations

import dataclasses
import gzip
import json
import subprocess
from pathlib import Path

import pytest
from preprocess_helpers import EOD, NASTY, ROOT, command, expected_files, lines, names, tokenized, written

from megawrap.errors import ConfigError, RunError
from megawrap.preprocess import engine
from megawrap.preprocess.source import SUFFIXES, find

TEXTS = [*NASTY, "long " * 60_000, *(f"document {number} " * (number % 50) for number in range(1500)), ["a", "", "b"]]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Many chunks even for small inputs."""
    monkeypatch.setattr(engine, "LARGEST_CHUNK", 4096)
    monkeypatch.setattr(engine, "SMALLEST_CHUNK", 4096)


def zstd(data: bytes) -> bytes:
    library = pytest.importorskip("zstandard", reason="zstandard is not installed")
    return library.ZstdCompressor().compress(data)


def parquet(path: Path, columns: dict[str, list]) -> Path:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet as library

    library.write_table(pyarrow.table(columns), path, row_group_size=100)
    return path


def halves(data: bytes, pack) -> bytes:
    """Packed as two pieces, one behind the other, as ``cat a.gz b.gz`` makes them; cut in the middle of a line."""
    return pack(data[: len(data) // 2]) + pack(data[len(data) // 2 :])


PACKED = {
    "plain": lambda data: data,
    "a mark": lambda data: b"\xef\xbb\xbf" + data,
    "no last line end": lambda data: data[:-1],
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "blank lines": lambda data: b"\n \r\n" + data.replace(b"\n", b"\n\n"),
    "gzip": gzip.compress,
    "gzip of a mark": lambda data: gzip.compress(b"\xef\xbb\xbf" + data),
    "gzip twice": lambda data: halves(data, gzip.compress),
    "zstd": zstd,
    "zstd twice": lambda data: halves(data, zstd),
}


@pytest.mark.parametrize("form", PACKED)
def test_all_forms_of_a_file_give_the_same_bytes(settings, processor, form):
    job = settings(PACKED[form](lines(TEXTS)), workers=2, append_eod=True)
    reports = []
    made = engine.run(job, reports.append)
    assert written(job.prefix("text")) == expected_files(tokenized(TEXTS, processor.encode_as_ids, EOD), 8)
    assert made.documents == len(TEXTS)
    marked = 3 if form == "a mark" else 0
    assert reports[-1].bytes == reports[-1].total_bytes == job.input.stat().st_size - marked


def test_the_columns_of_parquet_are_keys(settings, tmp_path, processor):
    texts = [text for text in TEXTS if isinstance(text, str)]
    file = parquet(tmp_path / "in.parquet", {"n": [1] * len(texts), "text": texts, "more": [[t, "x"] for t in texts]})
    job = dataclasses.replace(settings(b""), input=file, json_keys=("more", "text"), workers=2)
    engine.run(job)
    assert written(job.prefix("text")) == expected_files(tokenized(texts, processor.encode_as_ids, None), 8)
    pairs = [[text, "x"] for text in texts]
    assert written(job.prefix("more")) == expected_files(tokenized(pairs, processor.encode_as_ids, None), 8)


@pytest.mark.parametrize("input", ["data", "data/**/*.json*", "data/*/*"])
def test_folders_and_patterns_are_files_in_the_order_of_their_names(settings, tmp_path, processor, input):
    parts = {"b/2.jsonl": TEXTS[:20], "b/10.jsonl.gz": TEXTS[20:50], "a/9.json": TEXTS[50:]}
    for name, texts in parts.items():
        file = tmp_path / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        data = lines(texts)[:-1]  # no line end between two files
        file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (tmp_path / "data/a/0.jsonl").touch()
    if input == "data":
        (tmp_path / "data/README.md").write_text("not text to train on")
        (tmp_path / "data/.hidden.jsonl").write_text("neither")
    job = dataclasses.replace(settings(b""), input=tmp_path / input, workers=2)
    made = engine.run(job)
    texts = [text for name in sorted(parts) for text in parts[name]]
    assert written(job.prefix("text")) == expected_files(tokenized(texts, processor.encode_as_ids, None), 8)
    assert [file.name for file in made.origin.inputs] == ["9.json", "10.jsonl.gz", "2.jsonl"]


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, zstd])
def test_standard_input(tmp_path, processor, pack):
    words = command("--input", "-", "--output-prefix", tmp_path / "out", "--workers", "2")
    data = pack(b"\xef\xbb\xbf" + lines(TEXTS))
    done = subprocess.run(words, input=data, cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert written(f"{tmp_path}/out_text_document") == expected_files(
        tokenized(TEXTS, processor.encode_as_ids, None), 8
    )
    (file,) = json.loads((tmp_path / "out_text_document.json").read_bytes())["origin"]["inputs"]
    assert file["bytes"] == len(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "MW603 standard input is empty: there is nothing to tokenize"),
        (b"PAR1", "MW604 standard input is a Parquet file, which cannot be read from front to back; name it"),
        (
            b'{"text": "x"}\nbad\n',
            "MW605 standard input, line 2 (byte 14): not valid JSON: Expecting value at column 1",
        ),
    ],
)
def test_standard_input_that_cannot_be_used(tmp_path, data, message):
    words = command("--input", "-", "--output-prefix", tmp_path / "out")
    done = subprocess.run(words, input=data, cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert done.stderr.decode() == f"megawrap.preprocess: error: {message}\n"
    assert done.returncode in (1, 2)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("pack", "what"),
    [
        (
            lambda data: gzip.compress(data)[:-9],
            "gzip: Compressed file ended before the end-of-stream marker",
        ),
        (lambda data: gzip.compress(data)[:-7] + b"xxxxxxx", "gzip: CRC check failed"),
        (lambda data: gzip.compress(data) + b"garbage", "gzip: Not a gzipped file"),
        (lambda data: zstd(data)[:-9], "zstd: it ends in the middle: the file is cut off"),
        (lambda data: zstd(data)[:50] + b"x" * 99, "zstd: "),
        (lambda data: b"PAR1" + data, "parquet: "),
    ],
)
def test_broken_files_are_told(settings, pack, what):
    if what.startswith("parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    job = settings(pack(lines(TEXTS)))
    with pytest.raises(RunError) as failed:
        engine.run(job)
    assert str(failed.value).startswith(f"{job.input} cannot be unpacked as {what}")
    assert failed.value.findings[0].id == "MW609"
    assert names(job.input.parent) == ["in.jsonl"]


@pytest.mark.parametrize(
    ("columns", "message", "nearest"),
    [
        ({"txt": ["x"], "id": [1]}, "has no column 'text'; there are txt, id", ("txt",)),
        ({"text": [1]}, "has int64 in the column 'text', and strings or lists of strings are needed", ()),
        ({"text": [b"x"]}, "has binary in the column 'text', and strings or lists of strings are needed", ()),
        ({"text": [[1]]}, "has list<element: int64> in the column 'text', and strings or lists of strings are", ()),
    ],
)
def test_columns_that_hold_no_text_are_refused(settings, tmp_path, columns, message, nearest):
    job = dataclasses.replace(settings(b""), input=parquet(tmp_path / "in.parquet", columns))
    with pytest.raises(ConfigError) as refused:
        engine.run(job)
    assert str(refused.value).startswith(f"{job.input} {message}")
    assert refused.value.findings[0].nearest == nearest


def test_a_row_that_holds_no_text_is_told(settings, tmp_path):
    file = parquet(tmp_path / "in.parquet", {"text": ["x"] * 700 + [None]})
    with pytest.raises(RunError) as failed:
        engine.run(dataclasses.replace(settings(b""), input=file))
    assert str(failed.value) == f'{file}, row 701: "text" is null, and a string or a list of strings is needed'


def test_nothing_to_read_is_told(tmp_path):
    with pytest.raises(ConfigError) as refused:
        find(tmp_path)
    assert str(refused.value) == f"{tmp_path} has no file that ends in {', '.join(SUFFIXES)}"
    with pytest.raises(ConfigError, match=r"\*\.jsonl: no file is named like this$"):
        find(tmp_path / "*.jsonl")
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=r"^all 2 files are empty, from .*a\.jsonl on: there is nothing to tokenize$"):
        find(tmp_path)
    (tmp_path / "c.jsonl").write_bytes(b"BZh9")
    with pytest.raises(ConfigError, match="is bzip2 data"):
        find(tmp_path)


@pytest.mark.parametrize("package", ["zstandard", "pyarrow"])
def test_a_missing_package_is_named(settings, tmp_path, monkeypatch, package):
    job = settings(zstd(b"{}\n"))
    if package == "pyarrow":
        job = dataclasses.replace(job, input=parquet(tmp_path / "in.parquet", {"text": ["x"]}))
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ConfigError, match=rf"the package {package}: pip install {package}$"):
        engine.run(job)


def test_a_name_that_looks_like_a_pattern_is_a_name_first(settings, tmp_path):
    job = settings(["x"])
    odd = job.input.rename(tmp_path / "in[1].jsonl")
    assert [source.path for source in find(odd)] == [odd]
