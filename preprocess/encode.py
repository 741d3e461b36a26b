"""One chunk of the input as the arrays that go into the output."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from megawrap.preprocess.documents import BadLine, Documents, parse
from megawrap.preprocess.tokenizers import BadText, Encoded, Tokenizer


@dataclasses.dataclass(frozen=True, slots=True)
class EncodedChunk:
    """The documents of a chunk, as Megatron's tool stores them.

    A document has one sequence for each of its texts that gave tokens, so an empty document has none.
    """

    tokens: npt.NDArray[Any]
    """Shape [tokens], in the type that the output stores."""
    lengths: npt.NDArray[np.int32]
    """Tokens of each sequence, shape [sequences]."""
    ends: npt.NDArray[np.int64]
    """Sequences of the chunk up to the end of each document, shape [documents]."""
    blank: int
    """Lines with nothing on them."""


def encode(data: bytes, key: str, tokenizer: Tokenizer, eod: int | None, dtype: str) -> EncodedChunk:
    """Encode the lines in ``data``; ``eod`` is put at the end of every document that has tokens, unless it is None.

    Raises:
        BadLine: for the first line that cannot be used.
    """
    documents = parse(data, key)
    try:
        encoded = tokenizer.encode_batch(documents.texts)
    except BadText as bad:
        raise BadLine(documents.offset_of_text(bad.index), bad.reason) from None
    return _arrange(documents, encoded, eod, dtype)


def _arrange(documents: Documents, encoded: Encoded, eod: int | None, dtype: str) -> EncodedChunk:
    count = len(documents.counts)
    kept = encoded.lengths > 0
    document_of_sequence = np.repeat(np.arange(count), documents.counts)[kept]
    sequences = np.bincount(document_of_sequence, minlength=count)
    ends = np.cumsum(sequences, dtype=np.int64)
    ids, lengths = encoded.ids, encoded.lengths[kept]
    if eod is not None:
        last = ends[sequences > 0] - 1
        ids = np.insert(ids, np.cumsum(lengths)[last], eod)
        lengths[last] += 1
    return EncodedChunk(ids.astype(dtype), lengths.astype("<i4"), ends, documents.blank)
