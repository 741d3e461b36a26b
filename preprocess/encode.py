"""One chunk of the input as the arrays that go into the output."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from megawrap.preprocess.documents import BadLine, Documents, Texts, parse
from megawrap.preprocess.tokenizers import BadText, Encoded, Tokenizer


@dataclasses.dataclass(frozen=True, slots=True)
class Arrays:
    """The documents of a chunk under one key, as Megatron's tool stores them.

    A document has one sequence for each of its texts that gave tokens, so an empty document has none.
    """

    tokens: npt.NDArray[Any]
    """Shape [tokens], in the type that the output stores."""
    lengths: npt.NDArray[np.int32]
    """Tokens of each sequence, shape [sequences]."""
    ends: npt.NDArray[np.int64]
    """Sequences of the chunk up to the end of each document, shape [documents]."""


@dataclasses.dataclass(frozen=True, slots=True)
class EncodedChunk:
    """A chunk: its arrays for each key, how many lines have nothing on them, and those that cannot be used."""

    keys: tuple[Arrays, ...]
    blank: int
    bad: list[BadLine]


def encode(data: bytes, keys: Sequence[str], tokenizer: Tokenizer, eod: int | None, dtype: str) -> EncodedChunk:
    """Encode the lines in ``data``; ``eod`` is put at the end of every document that has tokens, unless it is None.

    A line that cannot be used under one key is left out under all.
    """
    documents = parse(data, keys)
    try:
        arrays = tuple(_arrange(texts, tokenizer, eod, dtype) for texts in documents.keys)
    except BadText:
        documents = documents.without(_unusable(documents, tokenizer))
        arrays = tuple(_arrange(texts, tokenizer, eod, dtype) for texts in documents.keys)
    return EncodedChunk(arrays, documents.blank, documents.bad)


def _unusable(documents: Documents, tokenizer: Tokenizer) -> dict[int, tuple[str, str]]:
    """The documents that the tokenizer refuses, and why."""
    found: dict[int, tuple[str, str]] = {}
    for texts in documents.keys:
        start = 0
        while start < len(texts.texts):
            try:
                _encode(tokenizer, texts.texts[start:])
                break
            except BadText as bad:
                found.setdefault(texts.document_of(start + bad.index), ("cannot be tokenized", bad.reason))
                start += bad.index + 1
    return found


def _encode(tokenizer: Tokenizer, texts: Sequence[str]) -> Encoded:
    """``tokenizer.encode_batch`` with a guard: an id that has no place in the vocabulary would be stored as another.

    Raises:
        BadText: for the first text that cannot be encoded.
    """
    encoded = tokenizer.encode_batch(texts)
    if encoded.ids.size and not (encoded.ids.min() >= 0 and encoded.ids.max() < tokenizer.vocab_size):
        wrong = int(np.argmax((encoded.ids < 0) | (encoded.ids >= tokenizer.vocab_size)))
        text = int(np.searchsorted(np.cumsum(encoded.lengths), wrong, side="right"))
        limit = tokenizer.vocab_size - 1
        raise BadText(text, f"the id {encoded.ids[wrong]} is outside the vocabulary, 0 to {limit}")
    return encoded


def _arrange(documents: Texts, tokenizer: Tokenizer, eod: int | None, dtype: str) -> Arrays:
    encoded = _encode(tokenizer, documents.texts)
    count = len(documents.counts)
    kept = encoded.lengths > 0
    document_of_sequence = np.repeat(np.arange(count), documents.counts)[kept]
    sequences = np.bincount(document_of_sequence, minlength=count)
    ends = np.cumsum(sequences, dtype=np.int64)
    ids, lengths = encoded.ids.astype(dtype, copy=False), encoded.lengths[kept]
    if eod is not None:
        last = ends[sequences > 0] - 1
        ids = np.insert(ids, np.cumsum(lengths)[last], eod)
        lengths[last] += 1
    return Arrays(ids, lengths.astype("<i4"), ends)
