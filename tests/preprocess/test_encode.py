"""Chunks to arrays: sequences, documents and end-of-document ids as Megatron's tool has them."""

from __future__ import annotations

import numpy as np
import pytest
from preprocess_helpers import EOD, NASTY, SP, lines, tokenized

from megawrap.preprocess.encode import encode
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import Encoded, build

NULL = build(TokenizerSettings(type="NullTokenizer", vocab_size=100))


@pytest.mark.parametrize("eod", [None, EOD])
@pytest.mark.parametrize(
    "texts",
    [
        list(NASTY),
        ["", "", ""],
        [],
        [[], ["a"], ["", "b", ""], "", ["c", "d"], [""]],
        [["only", "lists"], ["and", "more", ""]],
    ],
)
def test_documents_are_laid_out_as_megatron_does(texts, eod, processor):
    (chunk,) = encode(lines(texts), ["text"], build(SP), eod, "<u2").keys
    documents = tokenized(texts, processor.encode_as_ids, eod)
    sequences = [ids for document in documents for ids in document]
    assert chunk.tokens.tolist() == [id for ids in sequences for id in ids]
    assert chunk.lengths.tolist() == list(map(len, sequences))
    ends = [sum(map(len, documents[: end + 1])) for end in range(len(documents))]
    assert chunk.ends.tolist() == ends
    assert (chunk.tokens.dtype, chunk.lengths.dtype, chunk.ends.dtype) == ("<u2", "<i4", "<i8")


def test_texts_that_cannot_be_encoded_are_told_by_their_lines():
    rows = [{"a": "1 2", "b": "1"}, {"a": ["3", "x", "y"], "b": "2"}, {"a": "4", "b": "3"}, {"a": "5", "b": "100"}]
    data = lines([*rows, {"a": ["6", "7"], "b": "8 9"}])
    chunk = encode(data, ["a", "b"], NULL, None, "<u2")
    assert [(bad.number, bad.offset, bad.reason) for bad in chunk.bad] == [
        (1, data.index(b'{"a": ["3"'), "NullTokenizer reads numbers with one space between two, and 'x' is none"),
        (3, data.index(b'{"a": "5"'), "the id 100 is outside the vocabulary, 0 to 99"),
    ]
    assert [arrays.tokens.tolist() for arrays in chunk.keys] == [[1, 2, 4, 6, 7], [1, 3, 8, 9]]
    assert [arrays.ends.tolist() for arrays in chunk.keys] == [[1, 2, 4], [1, 2, 3]]


@pytest.mark.parametrize("wrong", [-1, 100, 70_000])
def test_no_id_outside_the_vocabulary_is_stored(wrong):
    class Wrong:
        vocab_size, eod = 100, None

        def encode_batch(self, texts):
            ids = [wrong if text == "b" else 1 for text in texts]
            return Encoded(np.array(ids, np.int32), np.ones(len(texts), np.int64))

    chunk = encode(lines(["a", "b", "c"]), ["text"], Wrong(), None, "<u2")
    assert [bad.reason for bad in chunk.bad] == [f"the id {wrong} is outside the vocabulary, 0 to 99"]
    assert chunk.keys[0].tokens.tolist() == [1, 1]


def test_the_largest_id_survives():
    tokenizer = build(TokenizerSettings(type="NullTokenizer", vocab_size=2**31))
    (chunk,) = encode(lines(["2147483646"]), ["text"], tokenizer, tokenizer.eod, "<i4").keys
    assert chunk.tokens.tolist() == [2**31 - 2, 2**31 - 1]
