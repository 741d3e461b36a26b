"""The sample that ships is what its generator makes, and its tokenizer is of the Llama 2 kind."""

from __future__ import annotations

import json

import pytest
import sentencepiece

from megawrap.preprocess.sample import make

CORPUS = make.CORPUS.read_bytes()


def test_the_corpus_is_what_the_generator_makes():
    assert make.corpus() == CORPUS


@pytest.mark.skipif(sentencepiece.__version__ != "0.2.3", reason="another sentencepiece may break ties differently")
def test_the_tokenizer_is_what_the_generator_makes():
    assert make.tokenizer(CORPUS) == make.TOKENIZER.read_bytes()


def test_the_corpus_is_varied_and_of_a_size_for_git():
    documents = [json.loads(line) for line in CORPUS.splitlines()]
    assert 2_000_000 < len(CORPUS) < 3_000_000
    kinds = {document["kind"] for document in documents}
    assert kinds >= {"en", "de", "fr", "es", "ru", "zh", "ja", "ar", "hi", "python", "c", "javascript", "chat"}
    text = "".join(document["text"] for document in documents)
    assert all(sign in text for sign in ("🚀", "👩\u200d💻", "🇩🇪", "\t", "\n\n", '"', "\\", "。", "؟"))
    assert b"\\u" in CORPUS and "好".encode() in CORPUS


def test_the_tokenizer_is_of_the_llama_2_kind(processor):
    assert processor.get_piece_size() == make.VOCABULARY == 4096
    assert [processor.unk_id(), processor.bos_id(), processor.eos_id(), processor.pad_id()] == [0, 1, 2, -1]
    assert [processor.is_byte(id) for id in (2, 3, 258, 259)] == [False, True, True, False]
    assert processor.encode("x", out_type=str)[0].startswith("▁"), "a space is put before a text"
    assert processor.encode("a  b") != processor.encode("a b"), "white space is kept"
    assert [piece.strip("▁") for piece in processor.encode("2026", out_type=str) if piece != "▁"] == list("2026")
    assert processor.encode("ﬁ①", out_type=str) != processor.encode("fi1", out_type=str), "nothing is normalised"


def test_every_document_comes_back_from_its_tokens(processor):
    texts = list(make.texts(CORPUS))
    assert processor.decode(processor.encode(texts, num_threads=1)) == texts
    assert not any(0 in ids for ids in processor.encode(texts, num_threads=1)), "bytes stand in for unknown letters"


def test_no_path_of_a_machine_is_in_the_model():
    model = make.TOKENIZER.read_bytes()
    assert not any(word in model for word in (b"/home", b"/tmp", b"/root", b".jsonl", b".model"))
