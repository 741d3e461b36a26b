"""A dataset in numbers, and some of its documents."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

import numpy as np

from megawrap.preprocess.indexed.blocks import Advance, unheard
from megawrap.preprocess.indexed.reader import Reader
from megawrap.preprocess.tokenizers import Tokenizer
from megawrap.preprocess.tools.histogram import Bin, Histogram
from megawrap.preprocess.tools.lineage import Lineage, lineage
from megawrap.preprocess.tools.source import Source, opened, sizes

_BLOCK = 1 << 16
QUANTILES = (0.05, 0.5, 0.95, 0.99)


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of a document. ``ids`` are its first, ``last`` its last one; ``text`` is what ``ids`` say, None
    without a tokenizer, or where they are none of its."""

    document: int
    tokens: int
    sequences: int
    ids: tuple[int | float, ...]
    last: int | float | None
    text: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """A dataset in numbers. Lengths are tokens of a document; ``quantiles`` are (share, length)."""

    prefix: str
    dtype: str
    documents: int
    sequences: int
    tokens: int
    bin_bytes: int
    idx_bytes: int
    multimodal: bool
    empty_documents: int
    shortest: int
    mean: float
    longest: int
    quantiles: tuple[tuple[float, int], ...]
    histogram: tuple[Bin, ...]
    origin: Lineage
    samples: tuple[Sample, ...]


def total_bytes(prefix: str) -> int:
    """What ``inspect`` tells ``advance`` in all."""
    return sizes([prefix])[0]


def inspect(
    prefix: str,
    *,
    samples: int = 3,
    sample_tokens: int = 64,
    tokenizer: Tokenizer | None = None,
    advance: Advance = unheard,
) -> Description:
    """Describe a dataset, with the first ``sample_tokens`` tokens of ``samples`` documents, from first to last.

    Raises:
        ConfigError: it is missing or broken.
    """
    with opened([prefix], advance) as (source,):
        lengths, empty = _lengths(source)
        return Description(
            prefix=prefix,
            dtype=np.dtype(source.header.dtype).name,
            documents=source.header.documents,
            sequences=source.header.sequences,
            tokens=source.tokens,
            bin_bytes=source.bytes,
            idx_bytes=os.fstat(source.index).st_size,
            multimodal=source.has_modes,
            empty_documents=empty,
            shortest=lengths.shortest or 0,
            mean=lengths.tokens / max(1, lengths.documents),
            longest=lengths.longest,
            quantiles=tuple((share, lengths.quantile(share)) for share in QUANTILES),
            histogram=tuple(lengths.bins()),
            origin=lineage(prefix),
            samples=tuple(_samples(prefix, source.header.documents, samples, sample_tokens, tokenizer)),
        )


def _lengths(source: Source) -> tuple[Histogram, int]:
    """The lengths of all documents, and the number of those without a token."""
    lengths, empty = Histogram(), 0
    for documents in source.documents(_BLOCK):
        lengths.add(documents.tokens)
        empty += int(np.count_nonzero(documents.tokens == 0))
    return lengths, empty


def _samples(prefix: str, documents: int, count: int, length: int, tokenizer: Tokenizer | None) -> Iterator[Sample]:
    reader = Reader(prefix)
    chosen = np.linspace(0, max(0, documents - 1), min(count, documents)).astype(int)
    for number in chosen.tolist():
        sequences = reader.document(number)
        ids = [id for sequence in sequences for id in sequence[:length].tolist()][:length]
        last = next((sequence[-1].item() for sequence in reversed(sequences) if len(sequence)), None)
        tokens = sum(map(len, sequences))
        yield Sample(number, tokens, len(sequences), tuple(ids), last, _text(ids, tokenizer))


def _text(ids: list[int | float], tokenizer: Tokenizer | None) -> str | None:
    if tokenizer is None or not all(isinstance(id, int) and 0 <= id < tokenizer.vocab_size for id in ids):
        return None
    return tokenizer.decode([int(id) for id in ids])
