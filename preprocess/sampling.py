"""A little of the input from three places of it: to try a tokenizer on, and to guess how large the output will be."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from megawrap.errors import MegawrapError
from megawrap.preprocess.chunks import cut, line_start
from megawrap.preprocess.documents import parse
from megawrap.preprocess.source import STDIN, Source, standard_input
from megawrap.preprocess.streams import Stream

SIZE = 1 << 16
"""Bytes taken at each place."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """``texts`` from ``text_bytes`` of the text; that of the whole input has about ``total_bytes`` (0: unknown)."""

    texts: tuple[str, ...] = ()
    text_bytes: int = 0
    total_bytes: int = 0


def sample(sources: Sequence[Source], keys: Sequence[str]) -> Sample:
    """Texts from the first, the middle and the last part of the input; of packed files from the beginning of each.

    Lines that cannot be used are left to the run, and so is a file that cannot be read.
    """
    places = list(itertools.chain.from_iterable(_places(sources)))
    texts: list[str] = []
    taken = consumed = 0
    for source, position in places:
        data, cost = _read(source, position, keys)
        texts += [text for of_key in parse(data, keys).keys for text in of_key.texts]
        taken += len(data)
        consumed += cost
    size = sum(source.size for source in sources)
    return Sample(tuple(texts), taken, size * taken // consumed if consumed else 0)


def _places(sources: Sequence[Source]) -> Iterator[list[tuple[Source, float]]]:
    """Source and how far into it, from 0 to 1."""
    if len(sources) == 1:
        yield [(sources[0], share) for share in ((0.0, 0.5, 1.0) if sources[0].seekable else (0.0,))]
    else:
        middle = sources[len(sources) // 2]
        yield [(sources[0], 0.0), (middle, 0.5), (sources[-1], 1.0)][: len(sources) if len(sources) > 2 else None]


def _read(source: Source, share: float, keys: Sequence[str]) -> tuple[bytes, int]:
    """Some whole lines, and how many bytes of the file they are."""
    if source.path == STDIN:
        data = standard_input().peek()[:SIZE] if source.kind == "plain" else b""
        return data[: data.rfind(b"\n") + 1], 0
    try:
        if source.seekable:
            data = _plain(source, share)
            return data, len(data)
        stream = Stream(source, keys)
        data = next(cut(stream.blocks(), SIZE), b"")
        return data, stream.consumed
    except (MegawrapError, OSError):
        return b"", 0


def _plain(source: Source, share: float) -> bytes:
    with source.path.open("rb", buffering=0) as file:
        start = max(source.start, int((source.size - SIZE) * share))
        if start > source.start:
            start = line_start(file.fileno(), start, source.size)
        file.seek(start)
        data = file.read(SIZE)
    return data if start + len(data) == source.size else data[: data.rfind(b"\n") + 1]
