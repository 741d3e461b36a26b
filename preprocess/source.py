"""The input file: is it JSON lines at all, where do its lines begin, and what is its fingerprint."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from megawrap.errors import ConfigError, Finding, RunError

BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 20
# First bytes of what people hand in by mistake.
_FOREIGN = (
    (b"\x1f\x8b", "gzip data", "unpack it first: gzip -dk FILE"),
    (b"\x28\xb5\x2f\xfd", "zstandard data", "unpack it first: zstd -dk FILE"),
    (b"\xfd7zXZ\x00", "xz data", "unpack it first: xz -dk FILE"),
    (b"BZh", "bzip2 data", "unpack it first: bzip2 -dk FILE"),
    (b"PK\x03\x04", "a zip archive", "unpack it first: unzip FILE"),
    (b"PAR1", "a Parquet file", "write its rows as JSON, one a line"),
    (b"\xff\xfe", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE"),
    (b"\xfe\xff", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A file that has been looked at. ``start`` is the byte its text begins at: 3 behind a byte order mark, else 0."""

    path: Path
    size: int
    modified_ns: int
    start: int

    def unchanged(self) -> bool:
        """Whether the file still has the size and the time of its last change that it had at first."""
        try:
            now = self.path.stat()
        except OSError:
            return False
        return (now.st_size, now.st_mtime_ns) == (self.size, self.modified_ns)


def examine(path: Path) -> Source:
    """Look at the first bytes of ``path``.

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
    _refuse_foreign(path, head)
    start = len(BOM) if head.startswith(BOM) else 0
    if status.st_size == start:
        raise _refused("MW603", f"{path} is empty: there is nothing to tokenize")
    return Source(path, status.st_size, status.st_mtime_ns, start)


def _refuse_foreign(path: Path, head: bytes) -> None:
    for magic, what, remedy in _FOREIGN:
        if head.startswith(magic):
            message = f"{path} is {what}, and JSON lines in UTF-8 are needed; {remedy.replace('FILE', str(path))}"
            raise _refused("MW604", message)


def _refused(id: str, message: str) -> ConfigError:
    return ConfigError(Finding(id=id, message=message, keys=("--input",)))


def chunks(source: Source, target: int) -> Iterator[tuple[int, int]]:
    """Byte ranges that cover the text, each about ``target`` bytes long and made of whole lines.

    A line longer than ``target`` is a range of its own, and is searched through only once.

    Raises:
        RunError: the file cannot be read.
    """
    with _reading(source.path), source.path.open("rb", buffering=0) as file:
        start = source.start
        while start < source.size:
            end = _line_start(file.fileno(), start + target, source.size)
            yield start, end
            start = end


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise RunError(Finding(id="MW602", message=message, keys=("--input",))) from None


def _line_start(descriptor: int, position: int, size: int) -> int:
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


def line_number(path: Path, offset: int) -> int:
    """Number, from 1, of the line that holds byte ``offset``.

    Raises:
        RunError: the file cannot be read.
    """
    newlines = 0
    with _reading(path), path.open("rb") as file:
        while offset > 0 and (block := file.read(min(_BLOCK, offset))):
            newlines += block.count(b"\n")
            offset -= len(block)
    return newlines + 1


class Digest:
    """The SHA-256 of a file, computed in a thread meanwhile. Leaving the ``with`` block early stops it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sha256")
        self._future = self._pool.submit(sha256, path, self._stop)

    def __enter__(self) -> Digest:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stop.set()
        self._pool.shutdown()

    def result(self) -> str:
        """Wait for the digest, in hexadecimal.

        Raises:
            RunError: the file could not be read to its end.
        """
        with _reading(self._path):
            return self._future.result()


def sha256(path: Path, stop: threading.Event | None = None) -> str:
    """SHA-256 of a file in hexadecimal, as ``sha256sum`` prints it (of its beginning, once ``stop`` is set)."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while (block := file.read(_BLOCK)) and not (stop and stop.is_set()):
            digest.update(block)
    return digest.hexdigest()
