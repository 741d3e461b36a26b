"""Chunks to arrays: sequences, documents and end-of-document ids as Megatron's tool has them."""

from __future__ import annotations

import pytest
from preprocess_helpers import EOD, NASTY, SP, lines, tokenized

from megawrap.preprocess.documents import BadLine
from megawrap.preprocess.encode import encode
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import build

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
    chunk = encode(lines(texts), "text", build(SP), eod, "<u2")
    documents = tokenized(texts, processor.encode_as_ids, eod)
    sequences = [ids for document in documents for ids in document]
    assert chunk.tokens.tolist() == [id for ids in sequences for id in ids]
    assert chunk.lengths.tolist() == list(map(len, sequences))
    ends = [sum(map(len, documents[: end + 1])) for end in range(len(documents))]
    assert chunk.ends.tolist() == ends
    assert (chunk.tokens.dtype, chunk.lengths.dtype, chunk.ends.dtype) == ("<u2", "<i4", "<i8")


def test_a_text_that_cannot_be_encoded_is_told_by_its_line():
    data = lines(["1 2", ["3", "4"], ["5", "six"], "7"])
    with pytest.raises(BadLine) as bad:
        encode(data, "text", NULL, None, "<u2")
    assert bad.value.offset == data.index(b'{"text": ["5"')
    assert bad.value.reason == "NullTokenizer reads numbers with one space between two, and 'six' is none"


def test_the_largest_id_survives():
    tokenizer = build(TokenizerSettings(type="NullTokenizer", vocab_size=2**31))
    chunk = encode(lines(["2147483646"]), "text", tokenizer, tokenizer.eod, "<i4")
    assert chunk.tokens.tolist() == [2**31 - 2, 2**31 - 1]
