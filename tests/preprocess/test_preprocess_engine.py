"""Whole runs: the same bytes with any number of workers, several keys, and what ends a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from preprocess_helpers import EOD, NASTY, expected_files, lines, names, tokenized, written

from megawrap.errors import ConfigError, RunError
from megawrap.preprocess import engine
from megawrap.preprocess.settings import TokenizerSettings


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Many chunks even for small inputs."""
    monkeypatch.setattr(engine, "LARGEST_CHUNK", 4096)
    monkeypatch.setattr(engine, "SMALLEST_CHUNK", 4096)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_workers_gives_the_same_bytes(settings, sample_lines, processor, workers):
    texts = [json.loads(line)["text"] for line in sample_lines] + [*NASTY, [], ["a", "", "b"], "x " * 20_000]
    data = b"".join(sample_lines) + lines(texts[len(sample_lines) :])
    reports = []
    job = settings(data, workers=workers, append_eod=True)
    made = engine.run(job, reports.append)
    documents = tokenized(texts, processor.encode_as_ids, EOD)
    assert written(job.prefix("text")) == expected_files(documents, 8)
    assert (made.documents, made.tokens) == (len(texts), sum(len(ids) for document in documents for ids in document))
    assert reports[-1].bytes == reports[-1].total_bytes == len(data)
    assert (reports[-1].rejected, reports[-1].resumed_bytes) == (0, 0)
    assert (reports[-1].documents, reports[-1].tokens) == (made.documents, made.tokens)
    assert [report.bytes for report in reports] == sorted(report.bytes for report in reports)
    assert names(job.input.parent) == [
        "in.jsonl",
        "out_text_document.bin",
        "out_text_document.idx",
        "out_text_document.json",
    ]


def test_each_key_has_its_own_output(settings, processor):
    rows = [{"a": f"first {n}", "b": ["", f"second {n}"] if n % 3 else ""} for n in range(300)]
    job = settings(rows, json_keys=("b", "a"), workers=2)
    made = engine.run(job)
    for key in ("a", "b"):
        documents = tokenized([row[key] for row in rows], processor.encode_as_ids, None)
        assert written(job.prefix(key)) == expected_files(documents, 8)
    assert [(output.key, output.documents, output.sequences) for output in made.outputs] == [
        ("b", 300, 200),
        ("a", 300, 300),
    ]


def test_large_vocabularies_take_four_bytes(settings):
    job = settings(
        ["1 2 3", "69999"], tokenizer=TokenizerSettings(type="NullTokenizer", vocab_size=70_000), append_eod=True
    )
    made = engine.run(job)
    assert written(job.prefix("text")) == expected_files([[[1, 2, 3, 69999]], [[69999, 69999]]], 4)
    assert made.outputs[0].dtype == "<i4"


def test_line_ends_blank_lines_and_marks_change_nothing(settings, processor):
    data = b'\xef\xbb\xbf{"text": "one"}\r\n\r\n   \n{"text": "two"}\n\n{"text": "three"}'
    job = settings(data)
    made = engine.run(job)
    assert written(job.prefix("text")) == expected_files(
        tokenized(["one", "two", "three"], processor.encode_as_ids, None), 8
    )
    assert made.outputs[0].blank_lines == 3


def test_an_earlier_output_is_replaced(settings, processor):
    engine.run(settings(["old"] * 100))
    job = settings(["new"])
    engine.run(job)
    assert written(job.prefix("text")) == expected_files(tokenized(["new"], processor.encode_as_ids, None), 8)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_bad_line_is_told_whatever_the_workers_do(settings, workers):
    rows = [b'{"text": "fine"}\n'] * 5000
    rows[1234] = b'{"text": 1}\n'
    rows[1300] = rows[4000] = b"broken\n"
    job = settings(b"".join(rows), workers=workers)
    with pytest.raises(RunError) as failed:
        engine.run(job)
    place = sum(map(len, rows[:1234]))
    reason = '"text" is a number, and a string or a list of strings is needed'
    assert str(failed.value) == f"{job.input}, line 1235 (byte {place}): {reason}"
    assert failed.value.findings[0].id == "MW605"
    assert names(job.input.parent) == ["in.jsonl"]


def test_a_failed_run_leaves_an_earlier_output_alone(settings):
    job = settings(["good"])
    engine.run(job)
    before = written(job.prefix("text"))
    job.input.write_bytes(b"bad\n")
    with pytest.raises(RunError):
        engine.run(job)
    assert written(job.prefix("text")) == before


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (["", [], [""]], "all 3 documents are empty"),
        (b"\n  \n\n", "there are only blank lines"),
    ],
)
def test_an_input_without_tokens_is_an_error(settings, data, what):
    job = settings(data, append_eod=True)
    with pytest.raises(RunError) as failed:
        engine.run(job)
    assert str(failed.value) == f"{job.input} gives no tokens: {what} (key text)"
    assert names(job.input.parent) == ["in.jsonl"]


@pytest.mark.parametrize("change", [b'{"text": "x"}\n' * 99, b"no JSON any more\n" * 10_000])
def test_an_input_that_changes_meanwhile_is_an_error(settings, change):
    job = settings(["some words"] * 10_000)

    def disturb(_):
        with job.input.open("r+b") as file:
            file.seek(0, 2 if change.startswith(b"{") else 0)
            file.write(change)

    with pytest.raises(RunError) as failed:
        engine.run(job, disturb)
    assert str(failed.value) == f"{job.input} changed while it was read; nothing was written"
    assert names(job.input.parent) == ["in.jsonl"]


def test_everything_wrong_is_told_at_once(settings, tmp_path):
    (tmp_path / "file").touch()
    job = settings(
        b"",
        workers=0,
        json_keys=("a/b", "text", "text"),
        tokenizer=TokenizerSettings(type="Llama2Tokenizer", model=Path("none.model")),
        output_prefix=str(tmp_path / "file" / "out"),
    )
    with pytest.raises(ConfigError) as refused:
        engine.run(job)
    assert [finding.message.replace(str(tmp_path), "DIR") for finding in refused.value.findings] == [
        "--workers 0: at least one process has to do the work",
        "--json-keys a/b text text: at least one key is needed, and each only once",
        "--json-keys 'a/b': the key becomes part of a file name, so it cannot be empty or hold a slash",
        "DIR/in.jsonl is empty: there is nothing to tokenize",
        "none.model: there is no such file",
        "--output-prefix DIR/file/out: DIR/file is not a folder",
    ]


def test_a_vocabulary_without_end_of_document_cannot_append_it(settings, monkeypatch):
    from megawrap.preprocess.tokenizers.sentence_piece import SentencePieceTokenizer

    init = SentencePieceTokenizer.__init__
    monkeypatch.setattr(
        SentencePieceTokenizer, "__init__", lambda self, model: init(self, model) or setattr(self, "eod", None)
    )
    job = settings(["x"], append_eod=True)
    with pytest.raises(ConfigError) as refused:
        engine.run(job)
    message = f"--append-eod: the vocabulary of {job.tokenizer.model} has no id that ends a document"
    assert str(refused.value) == message
