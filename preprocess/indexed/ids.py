"""Every id of a dataset against the size of the vocabulary, at the speed of reading, in constant memory."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from megawrap.errors import Finding
from megawrap.preprocess.indexed.blocks import Advance, blocks, unheard
from megawrap.preprocess.indexed.header import Header, broken
from megawrap.preprocess.indexed.reader import Index


@dataclasses.dataclass(frozen=True, slots=True)
class Ids:
    """What the ids of a dataset are: the highest that is valid (None: there is none), and what is wrong."""

    highest: int | None
    findings: tuple[Finding, ...]


def check_ids(prefix: str, header: Header, vocab_size: int | None, advance: Advance = unheard) -> Ids:
    """Check that every id of a dataset that is structurally sound lies in 0 ... ``vocab_size`` - 1.

    Without ``vocab_size`` only negative ids are wrong. ``advance`` is told the bytes of the .bin as they are read.

    Raises:
        OSError: the .bin cannot be read.
    """
    if np.dtype(header.dtype).kind == "f":
        message = f"{prefix}.idx, byte 17: the ids are stored as {np.dtype(header.dtype).name}, and an id is an integer"
        return Ids(None, (broken("MW660", message),))
    path = Path(f"{prefix}.bin")
    count = path.stat().st_size // header.itemsize
    limit = _limit(header, vocab_size)
    highest, first, wrong, start = -1, None, 0, 0
    # As unsigned numbers, negative ids are the highest, so that one comparison finds both kinds.
    for block in blocks(path, f"<u{header.itemsize}", count):
        largest = int(block.max())
        if largest >= limit:
            is_wrong = block >= limit
            if first is None:
                first = start + int(np.argmax(is_wrong))
            wrong += int(np.count_nonzero(is_wrong))
            largest = int(np.max(block, initial=0, where=~is_wrong)) if not is_wrong.all() else -1
        highest = max(highest, largest)
        start += len(block)
        advance(block.nbytes)
    found = () if first is None else (_outside(prefix, header, first, wrong, vocab_size),)
    return Ids(None if highest < 0 else highest, found)


def _limit(header: Header, vocab_size: int | None) -> int:
    """The first number, unsigned, that is no id."""
    bits = 8 * header.itemsize - (np.dtype(header.dtype).kind == "i")
    return min(1 << bits, 1 << bits if vocab_size is None else vocab_size)


def _outside(prefix: str, header: Header, token: int, count: int, vocab_size: int | None) -> Finding:
    """The first wrong id with its place; ``token`` is counted from the start of the .bin."""
    byte = token * header.itemsize
    with Path(f"{prefix}.bin").open("rb") as file:
        file.seek(byte)
        (id,) = np.frombuffer(file.read(header.itemsize), dtype=header.dtype)
    index = Index.of(prefix, header)
    # Of several sequences that begin at one byte, the last has the tokens; the same for documents.
    sequence = int(np.searchsorted(index.pointers, byte, side="right")) - 1
    document = int(np.searchsorted(index.documents, sequence, side="right")) - 1
    within = (byte - int(index.pointers[sequence])) // header.itemsize
    place = f"{prefix}.bin, byte {byte} (document {document}, sequence {sequence}, token {within})"
    outside = "is negative" if vocab_size is None else f"is outside the vocabulary of {vocab_size}"
    more = f"; it is the first of {count}" if count > 1 else ""
    return broken("MW660", f"{place}: id {id} {outside}{more}")
