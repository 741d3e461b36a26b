"""Which library encodes: the quicker one where it gives the same ids, and it makes no difference to the output."""

from __future__ import annotations

import re

import pytest
from preprocess_helpers import NASTY, expected_files, lines, run_command, tokenized, written

from megawrap.preprocess import engine, prepare
from megawrap.preprocess.tokenizers.fast import FastTokenizer

pytest.importorskip("gigatoken", reason="gigatoken is not installed")
TEXTS = [*NASTY, *(f"some {number} words, wörter und \u5b57\u5b57" for number in range(2000))]


def test_the_quicker_library_is_taken_and_gives_the_same_bytes(settings, processor):
    job = settings(TEXTS, workers=2)
    made = engine.run(job)
    assert made.engine.startswith("gigatoken ")
    assert written(job.prefix("text")) == expected_files(tokenized(TEXTS, processor.encode_as_ids, None), 8)


@pytest.mark.parametrize("place", [0, 10_000, 19_999])
def test_one_other_id_anywhere_in_the_sample_and_the_reference_encodes(settings, processor, monkeypatch, place):
    # Long enough that the three parts of the sample do not meet.
    texts = [f"word {number} of many" for number in range(20_000)]
    texts[place] = "the odd one"
    original = FastTokenizer.encode_batch

    def wrong(self, batch):
        return original(self, ["another" if text == "the odd one" else text for text in batch])

    monkeypatch.setattr(FastTokenizer, "encode_batch", wrong)
    job = settings(texts)
    prepared = prepare.prepare(job)
    assert prepared.recipe == job.tokenizer
    assert "differs from it on 'the odd one'" in prepared.why
    assert engine.execute(prepared).engine.startswith("sentencepiece ")
    assert written(job.prefix("text")) == expected_files(tokenized(texts, processor.encode_as_ids, None), 8)


def test_the_command_says_which_and_why(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(lines(TEXTS))
    done = run_command("--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    said = r"encoded with gigatoken [\d.]+: the ids of sentencepiece [\d.]+ on all [\d,]+ texts that were tried"
    assert re.fullmatch(said, done.stdout.splitlines()[0])
