"""The input: which files it is, and what each holds, by its first bytes and not by its name."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from megawrap.errors import ConfigError, Finding, RunError

BOM = b"\xef\xbb\xbf"
STDIN = Path("-")
SUFFIXES = (".jsonl", ".json", ".ndjson", ".jsonl.gz", ".json.gz", ".ndjson.gz", ".jsonl.zst", ".json.zst",
            ".ndjson.zst", ".parquet")  # fmt: skip
"""Files of a folder that belong to the input, by their names."""
Kind = Literal["plain", "gzip", "zstd", "parquet"]
_PACKED: tuple[tuple[bytes, Kind], ...] = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"PAR1", "parquet"))
# First bytes of what people hand in by mistake.
_FOREIGN = (
    (b"\xfd7zXZ\x00", "xz data", "unpack it first: xz -dk FILE"),
    (b"BZh", "bzip2 data", "unpack it first: bzip2 -dk FILE"),
    (b"PK\x03\x04", "a zip archive", "unpack it first: unzip FILE"),
    (b"\xff\xfe", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE"),
    (b"\xfe\xff", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A file that has been looked at, or standard input, whose ``size`` is 0.

    ``start`` is the byte that plain text begins at: 3 behind a byte order mark, else 0.
    """

    path: Path
    kind: Kind
    size: int
    modified_ns: int
    start: int

    @property
    def seekable(self) -> bool:
        """Whether workers can read any part of the text themselves."""
        return self.kind == "plain" and self.path != STDIN

    def unchanged(self) -> bool:
        """Whether the file still has the size and the time of its last change that it had at first."""
        if self.path == STDIN:
            return True
        try:
            now = self.path.stat()
        except OSError:
            return False
        return (now.st_size, now.st_mtime_ns) == (self.size, self.modified_ns)


class StandardInput(io.RawIOBase):
    """Standard input as it is: read once, hashed and counted on the way."""

    def __init__(self) -> None:
        self._file = io.BufferedReader(io.FileIO(0, closefd=False), 1 << 20)
        self.digest = hashlib.sha256()
        self.size = 0

    def peek(self) -> bytes:
        """The first bytes, as many as have come in one piece."""
        return self._file.peek()

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, ``size`` at most; none at the end."""
        block = self._file.read1(size)
        self.digest.update(block)
        self.size += len(block)
        return block


@functools.cache
def standard_input() -> StandardInput:
    """The one of this process."""
    return StandardInput()


def find(input: Path) -> tuple[Source, ...]:
    """The files of ``input`` in the order of their names: itself, those in a folder and its folders, or those that a
    pattern stands for. Empty ones are left out where there are several.

    Raises:
        ConfigError: there is none, or one cannot be used.
    """
    if input == STDIN:
        return (_standard_input(),)
    if input.is_dir():
        return _several(_in_folder(input), f"{input} has no file that ends in {', '.join(SUFFIXES)}")
    if not os.path.lexists(input) and glob.has_magic(str(input)):
        paths = [Path(name) for name in sorted(glob.iglob(str(input), recursive=True))]  # noqa: PTH207 (any path)
        return _several([path for path in paths if not path.is_dir()], f"{input}: no file is named like this")
    return (examine(input),)


def _in_folder(folder: Path) -> list[Path]:
    """Hidden files and folders are not looked at."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in names if name.endswith(SUFFIXES) and not name.startswith(".")]
    return sorted(found)


def _several(paths: list[Path], nothing: str) -> tuple[Source, ...]:
    if not paths:
        raise _refused("MW601", nothing)
    found, problems = [], []
    for path in paths:
        try:
            found.append(examine(path))
        except ConfigError as refused:
            problems += [finding for finding in refused.findings if finding.id != "MW603"]
    if problems:
        raise ConfigError(problems)
    if not found:
        raise _refused("MW603", f"all {len(paths)} files are empty, from {paths[0]} on: there is nothing to tokenize")
    return tuple(found)


def examine(path: Path) -> Source:
    """Look at the first bytes of the file ``path``.

    Raises:
        ConfigError: it is missing, not a file, unreadable, empty, or plainly not JSON lines.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _refused("MW602", f"{path} is not a regular file")
        with path.open("rb") as file:
            head = file.read(8)
    except FileNotFoundError:
        raise _refused("MW601", f"{path}: there is no such file") from None
    except OSError as error:
        raise _refused("MW602", f"{path} cannot be read: {error.strerror}") from None
    kind = _kind(path, head)
    start = len(BOM) if head.startswith(BOM) else 0
    if status.st_size == start:
        raise _refused("MW603", f"{path} is empty: there is nothing to tokenize")
    return Source(path, kind, status.st_size, status.st_mtime_ns, start)


def _standard_input() -> Source:
    try:
        head = standard_input().peek()
    except OSError as error:
        raise _refused("MW602", f"standard input cannot be read: {error.strerror}") from None
    if head in (b"", BOM):
        raise _refused("MW603", "standard input is empty: there is nothing to tokenize")
    kind = _kind(STDIN, head)
    if kind == "parquet":
        raise _refused("MW604", "standard input is a Parquet file, which cannot be read from front to back; name it")
    return Source(STDIN, kind, 0, 0, 0)


def _kind(path: Path, head: bytes) -> Kind:
    for magic, what, remedy in _FOREIGN:
        if head.startswith(magic):
            message = f"{path} is {what}, and JSON lines in UTF-8 are needed; {remedy.replace('FILE', str(path))}"
            raise _refused("MW604", message)
    return next((kind for magic, kind in _PACKED if head.startswith(magic)), "plain")


def _refused(id: str, message: str) -> ConfigError:
    return ConfigError(Finding(id=id, message=message, keys=("--input",)))


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """An error of the operating system while ``path`` is read is a failed run."""
    try:
        yield
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise RunError(Finding(id="MW602", message=message, keys=("--input",))) from None
