"""What the engine and its workers tell each other. Tokens are never among it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from megawrap.errors import Finding
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers.fast import Definition


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
    """All that a worker needs to know, told once. ``eod`` is None when no document is to end with it; ``memory`` is
    the number of bytes beyond which a worker asks to be replaced."""

    inputs: tuple[Path, ...]
    tokenizer: TokenizerSettings | Definition
    eod: int | None
    dtype: str
    targets: tuple[Target, ...]
    memory: int


@dataclasses.dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines from byte ``start`` up to ``end`` of the text of ``Job.inputs[source]``; ``data`` if the text cannot
    be read there. ``cost`` are the bytes of the file that it accounts for: fewer, where the file is packed."""

    number: int
    source: int
    start: int
    end: int
    cost: int
    data: bytes | None = dataclasses.field(default=None, repr=False, compare=False)

    def bare(self) -> Chunk:
        """The chunk without its text."""
        return dataclasses.replace(self, data=None)


@dataclasses.dataclass(frozen=True, slots=True)
class Sizes:
    """How much a chunk takes in an output; also the place where one begins."""

    tokens: int = 0
    sequences: int = 0
    documents: int = 0
    blank: int = 0
    rejected: int = 0

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(
            self.tokens + other.tokens,
            self.sequences + other.sequences,
            self.documents + other.documents,
            self.blank + other.blank,
            self.rejected + other.rejected,
        )

    @property
    def lines(self) -> int:
        """Lines of the input."""
        return self.documents + self.blank + self.rejected


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """To a worker: write the chunk that you encoded and kept, at these places, one for each target."""

    chunk: Chunk
    places: tuple[Sizes, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Rejected:
    """A line that cannot be used: its number in its chunk, its first byte in the input, and why not.

    ``kind`` is the reason without its details, for counting.
    """

    line: int
    offset: int
    kind: str
    reason: str
    content: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Encoded:
    """From a worker: a chunk is encoded and waits for its place. ``full``: the worker wants to be replaced."""

    chunk: Chunk
    sizes: tuple[Sizes, ...]
    rejected: tuple[Rejected, ...] = ()
    full: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """From a worker: a chunk is in the output; the CRC-32 of what was written."""

    chunk: Chunk
    checksum: int


@dataclasses.dataclass(frozen=True, slots=True)
class Failed:
    """From a worker: it cannot go on, for a reason outside the text."""

    finding: Finding


Order = Chunk | Write
Reply = Encoded | Written | Failed
