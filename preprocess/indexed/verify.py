"""Every structural rule of a dataset, checked over all of its index in constant memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from megawrap.errors import Finding
from megawrap.preprocess.indexed.header import broken, check, read
from megawrap.preprocess.indexed.reader import Index

_BLOCK = 1 << 20


def verify(prefix: str) -> list[Finding]:
    """What is wrong with ``prefix.bin`` and ``prefix.idx``; nothing if Megatron can read them to the last token.

    Sizes must agree, lengths must not be negative, offsets must be the running sum of the lengths, and documents must
    begin at sequence 0, never go back, and end at the last sequence.
    """
    problems = check(prefix)
    if problems:
        return problems
    header, _ = read(prefix)
    assert header is not None
    index = Index.of(prefix, header)
    return [*_sequences(prefix, index), *_documents(prefix, index)]


def _sequences(prefix: str, index: Index) -> Iterator[Finding]:
    expected = 0
    for start in range(0, index.header.sequences, _BLOCK):
        lengths = index.lengths[start : start + _BLOCK].astype(np.int64)
        if (lengths < 0).any():
            number = start + int(np.argmax(lengths < 0))
            yield broken("MW644", f"{prefix}.idx: sequence {number} has a negative length, {index.lengths[number]}")
            return
        ends = expected + np.cumsum(lengths * index.header.itemsize)
        wrong = index.pointers[start : start + _BLOCK] != ends - lengths * index.header.itemsize
        if wrong.any():
            number = start + int(np.argmax(wrong))
            where = f"sequence {number} begins at byte {index.pointers[number]}"
            yield broken("MW645", f"{prefix}.idx: {where}, which is not where the one before it ends")
            return
        expected = int(ends[-1])


def _documents(prefix: str, index: Index) -> Iterator[Finding]:
    documents = index.documents
    if documents[0] != 0 or documents[-1] != index.header.sequences:
        told = f"{documents[0]} to {documents[-1]}, and there are sequences 0 to {index.header.sequences}"
        yield broken("MW646", f"{prefix}.idx: the documents reach from {told}")
        return
    for start in range(0, len(documents) - 1, _BLOCK):
        backwards = np.diff(documents[start : start + _BLOCK + 1]) < 0
        if backwards.any():
            number = start + int(np.argmax(backwards)) + 1
            yield broken("MW646", f"{prefix}.idx: document {number} begins before the one that precedes it")
            return
