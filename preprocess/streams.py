"""Text that can only be read from front to back: packed files, Parquet, standard input. Never whole in memory."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, cast

import orjson

from megawrap.errors import ConfigError, Finding, RunError, nearest
from megawrap.preprocess.source import STDIN, Source, reading, standard_input

_BLOCK = 1 << 18
# zstd unpacks all that it is given, and text can grow a thousandfold.
_ZSTD_BLOCK = 1 << 14
_ROWS = 256
# Arrow's names of the types of columns that hold text.
_TEXT = ("string", "large_string", "string_view", "null")
_LISTS = re.compile(r"(large_)?list<\w+: (large_)?string(_view)?( not null)?>|dictionary<values=(large_)?string, .*>")


class Stream:
    """The lines of a source, block by block. ``consumed`` tells how many bytes of its file have been used so far."""

    def __init__(self, source: Source, keys: Sequence[str]) -> None:
        self.consumed = 0
        self._source = source
        self._keys = keys

    def blocks(self) -> Iterator[bytes]:
        """The text in pieces of any size.

        Raises:
            ConfigError: the package that unpacks it is missing, or a Parquet file has not the columns.
            RunError: the file cannot be read, or is broken or cut off.
        """
        path = self._source.path
        if self._source.kind == "parquet":
            yield from self._parquet()
        elif path == STDIN:
            yield from self._unpacked(cast(BinaryIO, standard_input()))
        else:
            with reading(path), path.open("rb") as file:
                yield from self._unpacked(file)

    def _unpacked(self, file: BinaryIO) -> Iterator[bytes]:
        raw = _Counted(file, self)
        unpack = {"plain": _plain, "gzip": _gzip, "zstd": _zstd}[self._source.kind]
        with reading(self._source.path):
            try:
                yield from unpack(raw)
            except (gzip.BadGzipFile, EOFError, zlib.error, _Broken) as error:
                raise self._broken(str(error)) from None

    def _parquet(self) -> Iterator[bytes]:
        parquet, errors = _pyarrow()
        path = self._source.path
        with reading(path):
            try:
                file = parquet.ParquetFile(path, pre_buffer=False, memory_map=False)
                self._check_columns(file.schema_arrow)
                yield from self._rows(file)
            except (errors, UnicodeDecodeError) as error:
                raise self._broken(str(error).splitlines()[0]) from None

    def _check_columns(self, schema: Any) -> None:
        for key in self._keys:
            if key not in schema.names:
                close = nearest(key, schema.names)
                raise self._unfit(f"has no column {key!r}; there are {', '.join(schema.names)}", close)
            if (kind := str(schema.field(key).type)) not in _TEXT and not _LISTS.fullmatch(kind):
                raise self._unfit(f"has {kind} in the column {key!r}, and strings or lists of strings are needed")

    def _unfit(self, reason: str, nearest: tuple[str, ...] = ()) -> ConfigError:
        message = f"{self._source.path} {reason}"
        return ConfigError(Finding(id="MW608", message=message, keys=("--input", "--json-keys"), nearest=nearest))

    def _rows(self, file: Any) -> Iterator[bytes]:
        total, done = max(1, file.metadata.num_rows), 0
        for batch in file.iter_batches(batch_size=_ROWS, columns=list(self._keys), use_threads=False):
            yield b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in batch.to_pylist())
            done += batch.num_rows
            self.consumed = self._source.size * done // total

    def _broken(self, reason: str) -> RunError:
        message = f"{self._source.path} cannot be unpacked as {self._source.kind}: {reason}"
        return RunError(Finding(id="MW609", message=message, keys=("--input",)))


class _Broken(Exception):
    """Why packed data cannot be unpacked."""


class _Counted:
    """A file that tells its stream how much has been read."""

    def __init__(self, file: BinaryIO, stream: Stream) -> None:
        self._file = file
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self._stream.consumed += len(block)
        return block


def _plain(raw: _Counted) -> Iterator[bytes]:
    while block := raw.read(_BLOCK):
        yield block


def _gzip(raw: _Counted) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=cast(BinaryIO, raw), mode="rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _zstd(raw: _Counted) -> Iterator[bytes]:
    """Frame behind frame, as ``zstd`` and ``cat`` of its files make them."""
    library = _zstandard()
    frame = None
    while block := raw.read(_ZSTD_BLOCK):
        while block:
            frame = frame or library.ZstdDecompressor().decompressobj()
            try:
                if text := frame.decompress(block):
                    yield text
            except library.ZstdError as error:
                raise _Broken(str(error)) from None
            block, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise _Broken("it ends in the middle: the file is cut off")


def _zstandard() -> Any:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise ConfigError(_missing("zstd data needs", "zstandard")) from None
    return zstandard


def _pyarrow() -> tuple[Any, Any]:
    """The module that reads Parquet, and what it raises for broken files."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise ConfigError(_missing("Parquet files need", "pyarrow")) from None
    return parquet, pyarrow.ArrowException


def _missing(what: str, package: str) -> Finding:
    message = f"{what} the package {package}: pip install {package}"
    return Finding(id="MW615", message=message, keys=("--input",))
