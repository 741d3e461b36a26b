"""A dataset that is being written, below the hidden folder of its run, and its way to its name."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from megawrap.errors import ConfigError, Finding, RunError
from megawrap.preprocess import manifest
from megawrap.preprocess.indexed.blocks import unheard
from megawrap.preprocess.indexed.writer import write_index
from megawrap.preprocess.staging import Staging
from megawrap.preprocess.tools.copying import append

# A run of bytes from which on the kernel copies faster than we do.
_LONG = 1 << 18


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """A dataset that was written."""

    prefix: str
    dtype: str
    documents: int
    sequences: int
    tokens: int


class Draft:
    """The files of a dataset in the making: ids, and beside them what the index is written from in the end.

    Use as a context manager: leaving it closes the files.
    """

    def __init__(self, staging: Staging, output: str, dtype: str, *, with_modes: bool) -> None:
        """Open the files in the folder of ``staging``. ``dtype`` is a value of ``header.DTYPES``.

        Raises:
            OSError: they cannot be made.
        """
        self.output = output
        self._staging, self._dtype = staging, dtype
        name = Path(output).name
        kinds = ("bin", "lengths", "ends", *(["modes"] if with_modes else []))
        self._paths = {kind: staging.new(f"{name}.{kind}") for kind in kinds}
        self._open = {kind: path.open("wb", buffering=1 << 20) for kind, path in self._paths.items()}
        self.tokens, self.lengths, self.ends = (self._open[kind] for kind in kinds[:3])
        self.modes = self._open.get("modes")
        self.sequences = 0
        self.moves: list[tuple[Path, Path]] = []
        """Data, index and record: where they are, and where they belong."""

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        with contextlib.ExitStack() as stack:
            for file in self._open.values():
                stack.callback(file.close)

    def copy_tokens(self, source: int, view: memoryview, start: int, end: int) -> None:
        """Take over bytes of another .bin, given as a descriptor and as a view of its memory map."""
        if end - start < _LONG:
            self.tokens.write(view[start:end])
            return
        self.tokens.flush()
        append(source, self.tokens.fileno(), start, end - start, unheard)

    def add_documents(self, counts: npt.NDArray[np.int64]) -> None:
        """Documents with these numbers of sequences, shape [documents]."""
        ends = np.cumsum(counts, dtype="<i8") + self.sequences
        self.ends.write(ends.tobytes())
        self.sequences = int(ends[-1]) if len(ends) else self.sequences

    def finish(self, record: bytes) -> Made:
        """Write the index and the record, and tell what was made. ``moves`` is where each file belongs now.

        Raises:
            OSError: a file cannot be written.
        """
        self.tokens.flush()
        os.fsync(self.tokens.fileno())  # what takes long is done before the first file is moved
        self._close()
        name = Path(self.output).name
        index, beside = self._staging.new(f"{name}.idx"), self._staging.new(f"{name}.json")
        header = write_index(index, self._dtype, self._paths["lengths"], self._paths["ends"], self._paths.get("modes"))
        beside.write_bytes(record)
        self.moves = [
            (self._paths["bin"], Path(f"{self.output}.bin")),
            (index, Path(f"{self.output}.idx")),
            (beside, manifest.path(self.output)),
        ]
        tokens = self._paths["bin"].stat().st_size // header.itemsize
        return Made(self.output, np.dtype(header.dtype).name, header.documents, header.sequences, tokens)


def publish(staging: Staging, drafts: Sequence[list[tuple[Path, Path]]]) -> None:
    """Move finished drafts to their names: all data, then all indices, then all records. If that is interrupted, none
    of them stays.

    Raises:
        OSError: a file cannot be moved.
    """
    moves = [draft[kind] for kind in range(3) for draft in drafts]
    try:
        staging.publish(moves)
    except BaseException:
        for _, final in reversed(moves):
            final.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def written(output: str) -> Iterator[None]:
    """An error of the operating system while ``output`` is written is a failed run, and nothing is left of it."""
    try:
        yield
    except OSError as error:
        message = f"{output} cannot be made: {error.strerror}; nothing is left of it"
        raise RunError(Finding(id="MW622", message=message, keys=("--output",))) from None


def need_space(output: str, count: int) -> None:
    """Nothing, when ``count`` bytes can be written beside ``output``.

    Raises:
        ConfigError: there is less room on that disk.
    """
    folder = Path(output).absolute().parent
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < count:
        message = f"{output} takes {count:,} bytes, and {folder} has {free:,} left"
        raise ConfigError(Finding(id="MW664", message=message, keys=("--output",)))
