"""Datasets to use the tools on, written by the second description of the format."""

from __future__ import annotations

import random
from pathlib import Path

from preprocess_helpers import expected_files

from megawrap.preprocess.indexed.reader import Reader

_TOKENS, _SEQUENCES = (0, 1, 2, 7, 40), (0, 1, 1, 1, 3)

Documents = list[list[list[int]]]


def make(path: Path, documents: Documents, code: int = 8, modes: bytes = b"") -> str:
    """Write documents, lists of sequences of ids, and give the prefix."""
    data, index = expected_files(documents, code)
    Path(f"{path}.bin").write_bytes(data)
    Path(f"{path}.idx").write_bytes(index + modes)
    return str(path)


def some_documents(seed: int, count: int, *, highest: int = 65_000) -> Documents:
    """Random documents: mostly of one sequence, some of none or several, some sequences empty."""
    rng = random.Random(seed)
    return [
        [
            [rng.randrange(highest) for _ in range(rng.choice((0, 1, 2, 7, 40)))]
            for _ in range(rng.choice((0, 1, 1, 1, 3)))
        ]
        for _ in range(count)
    ]


def read(prefix: str) -> Documents:
    """All documents, by our own reader."""
    reader = Reader(prefix)
    return [[ids.tolist() for ids in reader.document(number)] for number in range(reader.documents)]
