"""What the engine and its workers tell each other. Tokens are never among it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from megawrap.errors import Finding
from megawrap.preprocess.settings import TokenizerSettings


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """The files that a worker writes for one JSON key; ``name`` is what they will be called in the end."""

    key: str
    name: str
    tokens: Path
    lengths: Path
    ends: Path


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """All that a worker needs to know, told once. ``eod`` is None when no document is to end with it."""

    input: Path
    tokenizer: TokenizerSettings
    eod: int | None
    dtype: str
    targets: tuple[Target, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines from byte ``start`` up to ``end``, to be encoded for ``target`` (its place in ``Job.targets``)."""

    number: int
    target: int
    start: int
    end: int


@dataclasses.dataclass(frozen=True, slots=True)
class Sizes:
    """How much a chunk takes in the output; also the place where one begins."""

    tokens: int = 0
    sequences: int = 0
    documents: int = 0
    blank: int = 0

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(
            self.tokens + other.tokens,
            self.sequences + other.sequences,
            self.documents + other.documents,
            self.blank + other.blank,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """To a worker: write the chunk that you encoded and kept, at this place."""

    chunk: Chunk
    place: Sizes


@dataclasses.dataclass(frozen=True, slots=True)
class Encoded:
    """From a worker: a chunk is encoded and waits for its place."""

    chunk: Chunk
    sizes: Sizes


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """From a worker: a chunk is in the output."""

    chunk: Chunk


@dataclasses.dataclass(frozen=True, slots=True)
class Rejected:
    """From a worker: a chunk has a line that cannot be used. ``offset`` is the byte of the input it starts at."""

    chunk: Chunk
    offset: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Failed:
    """From a worker: it cannot go on, for a reason outside the text."""

    finding: Finding


Order = Chunk | Write
Reply = Encoded | Written | Rejected | Failed
