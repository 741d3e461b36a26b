"""A sound dataset that is read from, and must stay as it is while it is."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from megawrap.errors import ConfigError, Finding, MegawrapError, RunError, errors
from megawrap.preprocess.indexed import header as headers
from megawrap.preprocess.indexed.blocks import Advance, blocks
from megawrap.preprocess.indexed.header import Header
from megawrap.preprocess.indexed.verify import EMPTY, verify
from megawrap.preprocess.tools.names import absent, is_absent


@dataclasses.dataclass(frozen=True, slots=True)
class Documents:
    """Some documents behind each other; ``start`` is the byte of the .bin at which the first begins."""

    first: int
    first_sequence: int
    start: int
    counts: npt.NDArray[np.int64]
    """Sequences of each document, shape [documents]."""
    lengths: npt.NDArray[np.int32]
    """Tokens of each sequence, shape [sequences]."""
    tokens: npt.NDArray[np.int64]
    """Tokens of each document, shape [documents]."""


class Source:
    """The two files of a dataset, open. Use as a context manager."""

    def __init__(self, prefix: str, header: Header) -> None:
        self.prefix, self.header = prefix, header
        self.has_modes = headers.has_modes(prefix, header)
        self.data, self.index = (os.open(f"{prefix}{suffix}", os.O_RDONLY) for suffix in (".bin", ".idx"))
        self._before = self._state()
        self.bytes = os.fstat(self.data).st_size

    @property
    def tokens(self) -> int:
        """Tokens of the dataset."""
        return self.bytes // self.header.itemsize

    @property
    def total_bytes(self) -> int:
        """Bytes of both files."""
        return self.bytes + os.fstat(self.index).st_size

    def _state(self) -> list[tuple[int, int]]:
        return [(info.st_size, info.st_mtime_ns) for info in (os.fstat(self.data), os.fstat(self.index))]

    def documents(self, size: int) -> Iterator[Documents]:
        """All documents, ``size`` at a time."""
        at, before, start = 0, 0, 0
        path = Path(f"{self.prefix}.idx")
        header = self.header
        for bounds in blocks(path, "<i8", header.documents, header.documents_at + 8, size):
            counts = np.diff(bounds, prepend=before)
            sequences = int(bounds[-1]) - before
            raw = os.pread(self.index, 4 * sequences, header.lengths_at + 4 * before)
            lengths = np.frombuffer(raw, dtype="<i4")
            ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])[bounds - before]
            yield Documents(at, before, start, counts, lengths, np.diff(ends, prepend=0))
            at += len(bounds)
            before += sequences
            start += int(ends[-1]) * header.itemsize

    def modes(self, documents: Documents) -> npt.NDArray[np.int8]:
        """The modes of the sequences of ``documents``, which a multimodal dataset has, shape [sequences]."""
        raw = os.pread(self.index, len(documents.lengths), self.header.size + documents.first_sequence)
        return np.frombuffer(raw, dtype=np.int8)

    def must_be_unchanged(self) -> None:
        """Nothing, when both files are as they were when they were opened.

        Raises:
            RunError: they are not.
        """
        if self._state() != self._before:
            message = f"{self.prefix} changed while it was read; nothing was written"
            raise RunError(Finding(id="MW665", message=message))

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.data)
        os.close(self.index)


def sizes(prefixes: Sequence[str]) -> tuple[int, int]:
    """Bytes of all .idx and of all .bin that are there: what a bar has to go to."""
    there = [[Path(f"{prefix}{suffix}") for prefix in prefixes] for suffix in (".idx", ".bin")]
    index, data = (sum(path.stat().st_size for path in paths if path.is_file()) for paths in there)
    return index, data


@contextlib.contextmanager
def opened(prefixes: Sequence[str], advance: Advance) -> Iterator[list[Source]]:
    """The datasets, every structural rule of each checked; an empty one is a dataset too.

    Raises:
        ConfigError: with what is wrong with all of them.
    """
    problems: list[Finding] = []
    with contextlib.ExitStack() as stack:
        found = [_attempt(prefix, advance, problems, stack.enter_context) for prefix in prefixes]
        if problems:
            raise ConfigError(problems)
        yield [source for source in found if source is not None]


def _attempt(
    prefix: str, advance: Advance, problems: list[Finding], enter: Callable[[Source], Source]
) -> Source | None:
    try:
        if is_absent(prefix):
            raise ConfigError(absent(prefix))
        if wrong := [finding for finding in errors(verify(prefix, advance)) if finding.id != EMPTY]:
            raise ConfigError(wrong)
        header, _ = headers.read(prefix)
        assert header is not None
        return enter(Source(prefix, header))
    except OSError as error:
        problems.append(headers.broken("MW640", f"{prefix} cannot be read: {error.strerror}"))
    except MegawrapError as failed:
        problems += failed.findings
    return None
