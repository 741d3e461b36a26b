"""Lines that cannot be used: the run stops at the first one, or they are skipped, counted and told."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest
from preprocess_helpers import expected_files, lines, names, run_command, tokenized, written

from megawrap.errors import ConfigError, RunError
from megawrap.preprocess import engine, manifest
from megawrap.preprocess.settings import TokenizerSettings

BAD = {
    100: (b'{"text": "x"', "not valid JSON"),
    101: (b"", None),
    102: (b'{"txt": "x"}', "no such key"),
    500: (b'{"text": 7}', "not a string"),
    501: (b'{"text": "\xff"}', "not valid UTF-8"),
    900: (b'{"text": "\\ud800"}', "half a surrogate pair"),
    1499: (b'["x"]', "not an object"),
}
GOOD = [f"document {number}" for number in range(1500)]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Many chunks even for small inputs."""
    monkeypatch.setattr(engine, "LARGEST_CHUNK", 4096)
    monkeypatch.setattr(engine, "SMALLEST_CHUNK", 4096)


def rows() -> list[bytes]:
    return [BAD[n][0] + b"\n" if n in BAD else lines([text]) for n, text in enumerate(GOOD)]


def told(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "out.rejected.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_skipped_lines_are_told_and_the_others_are_used(settings, processor, workers, pack):
    job = settings(pack(b"".join(rows())), workers=workers, on_error="skip", max_errors=6)
    made = engine.run(job)
    kept = [text for number, text in enumerate(GOOD) if number not in BAD]
    assert written(job.prefix("text")) == expected_files(tokenized(kept, processor.encode_as_ids, None), 8)
    expected = []
    for number, (content, kind) in BAD.items():
        if kind:
            raw = "content_base64" if b"\xff" in content else "content"
            value = base64.b64encode(content).decode() if raw == "content_base64" else content.decode()
            place = {"file": str(job.input), "line": number + 1, "byte": sum(map(len, rows()[:number]))}
            expected.append({**place, "kind": kind, raw: value})
    found = told(job.input.parent)
    assert all(row.pop("reason") for row in found)
    assert found == expected
    assert made.rejected == {kind: 1 for _, kind in BAD.values() if kind}
    assert (made.outputs[0].rejected_lines, made.outputs[0].blank_lines) == (6, 1)


def test_one_line_too_many_ends_the_run(settings):
    job = settings(b"".join(rows()), workers=2, on_error="skip", max_errors=3)
    with pytest.raises(RunError) as failed:
        engine.run(job)
    first = f"{job.input}, line 101 (byte {sum(map(len, rows()[:100]))}): not valid JSON: "
    assert str(failed.value).startswith(
        "more than 3 lines cannot be used (1 not valid JSON, 1 no such key, 1 not a string, 1 not valid UTF-8); "
        f"the first: {first}"
    )
    assert names(job.input.parent) == ["in.jsonl"]


def test_ids_out_of_range_are_skipped_too(settings):
    tokenizer = TokenizerSettings(type="NullTokenizer", vocab_size=10)
    job = settings(["1 2", "10", "x", "3"], tokenizer=tokenizer, on_error="skip")
    engine.run(job)
    assert written(job.prefix("text")) == expected_files([[[1, 2]], [[3]]], 8)
    assert [(row["line"], row["reason"]) for row in told(job.input.parent)] == [
        (2, "the id 10 is outside the vocabulary, 0 to 9"),
        (3, "NullTokenizer reads numbers with one space between two, and 'x' is none"),
    ]


def test_lines_count_from_one_in_each_file(settings, tmp_path):
    job = settings(b"")
    (tmp_path / "in.jsonl").unlink()
    (tmp_path / "in1.jsonl").write_bytes(lines(["x"] * 700))
    (tmp_path / "in2.jsonl").write_bytes(lines(["x"] * 300) + b"bad")
    with pytest.raises(RunError, match=r"in2\.jsonl, line 301 \(byte 4200\): not valid JSON"):
        engine.run(type(job)(input=tmp_path / "in*.jsonl", output_prefix=job.output_prefix, tokenizer=job.tokenizer))


def test_an_earlier_list_of_skipped_lines_goes_with_its_output(settings, tmp_path):
    engine.run(settings([*GOOD, 1], on_error="skip"))
    assert (tmp_path / "out.rejected.jsonl").exists()
    engine.run(settings(GOOD, on_error="skip"))
    assert not (tmp_path / "out.rejected.jsonl").exists()


def test_an_output_with_skipped_lines_matches_only_where_they_may_be_skipped(settings):
    job = settings([*GOOD, 1, 2], on_error="skip")
    made = engine.run(job)
    assert manifest.matches(job) == made
    assert manifest.matches(settings([*GOOD, 1, 2], on_error="skip", max_errors=1)) is None
    assert manifest.matches(settings([*GOOD, 1, 2])) is None


def test_nothing_but_bad_lines_is_no_output(settings):
    with pytest.raises(RunError, match=r"gives no tokens: all lines were skipped \(key text\)$"):
        engine.run(settings([1, 2], on_error="skip"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"on_error": "ignore"}, "--on-error ignore: it is one of stop, skip"),
        ({"max_errors": -1}, "--max-errors -1: a number of lines is needed"),
    ],
)
def test_settings_that_make_no_sense(settings, change, message):
    with pytest.raises(ConfigError) as refused:
        engine.run(settings(["x"], **change))
    assert str(refused.value) == message


def test_the_command_says_what_it_skipped(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(b"".join(rows()))
    words = ["--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", "--on-error", "skip"]
    done = run_command(*words)
    assert (done.returncode, done.stderr) == (0, "")
    counts = (
        "1 not valid JSON, 1 no such key, 1 not a string, 1 not valid UTF-8, 1 half a surrogate pair, 1 not an object"
    )
    assert done.stdout.splitlines()[-1] == f"{tmp_path}/out.rejected.jsonl: skipped lines: {counts}"
    assert json.loads(run_command(*words, "--progress", "json").stdout.splitlines()[-1])["rejected"]["no such key"] == 1
