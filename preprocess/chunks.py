"""The input cut into chunks of whole lines, which is where all work is shared out."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence

from megawrap.preprocess.messages import Chunk
from megawrap.preprocess.source import BOM, Source, reading
from megawrap.preprocess.streams import Stream

_BLOCK = 1 << 20


def chunks(sources: Sequence[Source], keys: Sequence[str], target: int) -> Iterator[Chunk]:
    """Every line of the input, ``target`` bytes of them at a time; they depend on nothing else.

    A chunk of a file that can be read anywhere only tells its bytes, any other carries them.

    Raises:
        ConfigError: a source cannot be read here.
        RunError: a source cannot be read, or is broken.
    """
    number = itertools.count()
    for at, source in enumerate(sources):
        if source.seekable:
            for start, end in ranges(source, target):
                yield Chunk(next(number), at, start, end, end - start)
        else:
            yield from _streamed(source, keys, at, target, number)


def _streamed(source: Source, keys: Sequence[str], at: int, target: int, number: Iterator[int]) -> Iterator[Chunk]:
    stream = Stream(source, keys)
    position = consumed = 0
    for data in cut(stream.blocks(), target):
        mark = len(BOM) if position == 0 and data.startswith(BOM) else 0
        end = position + len(data)
        yield Chunk(next(number), at, position + mark, end, stream.consumed - consumed, data[mark:])
        position = end
        consumed = stream.consumed


def cut(blocks: Iterable[bytes], target: int) -> Iterator[bytes]:
    """Pieces of whole lines, each as short as it can be with ``target`` bytes; the last one may be shorter."""
    pending = bytearray()
    searched = target - 1
    for block in blocks:
        pending += block
        while (end := pending.find(b"\n", searched) + 1) > 0:
            yield bytes(pending[:end])
            del pending[:end]
            searched = target - 1
        searched = max(searched, len(pending))
    if pending:
        yield bytes(pending)


def ranges(source: Source, target: int) -> Iterator[tuple[int, int]]:
    """Byte ranges that cover the text of a plain file, each about ``target`` bytes long and made of whole lines.

    A line longer than ``target`` is a range of its own, and is searched through only once.

    Raises:
        RunError: the file cannot be read.
    """
    with reading(source.path), source.path.open("rb", buffering=0) as file:
        start = source.start
        while start < source.size:
            end = line_start(file.fileno(), start + target, source.size)
            yield start, end
            start = end


def line_start(descriptor: int, position: int, size: int) -> int:
    """First line start at ``position`` or behind it; ``size`` if there is none."""
    position -= 1  # a newline just before makes `position` itself a line start
    while position < size:
        block = os.pread(descriptor, min(_BLOCK, size - position), position)
        if not block:  # the file shrank; the run finds out at its end
            return size
        found = block.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(block)
    return size
