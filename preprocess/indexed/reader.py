"""Read documents of a dataset without loading it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from megawrap.errors import RunError
from megawrap.preprocess.indexed.header import Header, check, read


@dataclasses.dataclass(frozen=True, slots=True)
class Index:
    """The arrays of an .idx, mapped into memory."""

    header: Header
    lengths: npt.NDArray[np.int32]
    """Tokens of each sequence, shape [sequences]."""
    pointers: npt.NDArray[np.int64]
    """Byte of the .bin that each sequence begins at, shape [sequences]."""
    documents: npt.NDArray[np.int64]
    """Sequence that each document begins at, and the number of sequences at the end, shape [documents + 1]."""

    @classmethod
    def of(cls, prefix: str, header: Header) -> Index:
        """Map the arrays of ``prefix.idx``, whose size has been checked."""
        path = Path(f"{prefix}.idx")
        return cls(
            header,
            _mapped(path, "<i4", header.sequences, header.lengths_at),
            _mapped(path, "<i8", header.sequences, header.pointers_at),
            _mapped(path, "<i8", header.documents + 1, header.documents_at),
        )

    @property
    def end(self) -> int:
        """Byte of the .bin at which the last sequence ends."""
        return int(self.pointers[-1]) + int(self.lengths[-1]) * self.header.itemsize if self.header.sequences else 0


class Reader:
    """A dataset: ``len(reader)`` sequences of tokens, put together to ``reader.documents`` documents."""

    def __init__(self, prefix: str) -> None:
        """Open ``prefix.bin`` and ``prefix.idx``.

        Raises:
            RunError: with everything that the headers and sizes of the two files show to be wrong.
        """
        problems = check(prefix)
        if problems:
            raise RunError(problems)
        header, _ = read(prefix)
        assert header is not None
        self.index = Index.of(prefix, header)
        size = Path(f"{prefix}.bin").stat().st_size // header.itemsize
        self.tokens: npt.NDArray[Any] = _mapped(Path(f"{prefix}.bin"), header.dtype, size, 0)

    def __len__(self) -> int:
        return self.index.header.sequences

    @property
    def documents(self) -> int:
        """Number of documents."""
        return self.index.header.documents

    def sequence(self, number: int) -> npt.NDArray[Any]:
        """The tokens of a sequence, counted from 0."""
        start = int(self.index.pointers[number]) // self.index.header.itemsize
        return self.tokens[start : start + int(self.index.lengths[number])]

    def document(self, number: int) -> list[npt.NDArray[Any]]:
        """The sequences of a document, counted from 0."""
        return [self.sequence(at) for at in range(*map(int, self.index.documents[number : number + 2]))]


def _mapped(path: Path, dtype: str, count: int, offset: int) -> npt.NDArray[Any]:
    if count == 0:  # an empty range cannot be mapped
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=(count,))
