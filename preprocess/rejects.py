"""Lines that cannot be used: counted, told, and too many of them are the end."""

from __future__ import annotations

import base64
import collections
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from megawrap.errors import Finding, RunError
from megawrap.preprocess.messages import Rejected
from megawrap.preprocess.schedule import Placed
from megawrap.preprocess.source import STDIN, Source


def final(output_prefix: str) -> Path:
    """Where the rejected lines of a run are told, if there are any."""
    return Path(f"{output_prefix}.rejected.jsonl")


class Rejects:
    """Writes rejected lines to a file in the order of the input."""

    def __init__(self, path: Path, sources: Sequence[Source], allowed: int) -> None:
        """``path`` is made anew when there is a first line to write."""
        self.path = path
        self.counts: collections.Counter[str] = collections.Counter()
        self._sources = sources
        self._allowed = allowed
        self._first = ""
        path.unlink(missing_ok=True)

    def take(self, placed: Placed) -> None:
        """Take in the lines of a chunk; chunks come in the order of the input.

        Raises:
            RunError: a line more cannot be used than may be.
            OSError: the file cannot be written.
        """
        if not placed.rejected:
            return
        source = self._sources[placed.chunk.source]
        records = []
        for rejected in placed.rejected:
            line = placed.first_line + rejected.line
            self.counts[rejected.kind] += 1
            self._first = self._first or f"{_where(source, line, rejected.offset)}: {rejected.reason}"
            if self.counts.total() > self._allowed:
                raise RunError(self._too_many())
            records.append(_record(source, line, rejected))
        with self.path.open("ab") as file:
            file.write(b"".join(records))

    def _too_many(self) -> Finding:
        if not self._allowed:
            return Finding(id="MW605", message=self._first, keys=("--input",))
        kinds = told(self.counts)
        message = f"more than {self._allowed:,} lines cannot be used ({kinds}); the first: {self._first}"
        return Finding(id="MW605", message=message, keys=("--input", "--max-errors"))


def told(counts: dict[str, int]) -> str:
    """How many lines for which kind of reason, the most frequent first."""
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items(), key=lambda item: -item[1]))


def _where(source: Source, line: int, offset: int) -> str:
    if source.kind == "parquet":
        return f"{source.path}, row {line}"
    name = "standard input" if source.path == STDIN else str(source.path)
    return f"{name}, line {line} (byte {offset})"


def _record(source: Source, line: int, rejected: Rejected) -> bytes:
    """One line of the file. ``content`` is the line itself; in base64 if it is not UTF-8."""
    record: dict[str, Any] = {"file": str(source.path), "line": line}
    if source.kind != "parquet":
        record["byte"] = rejected.offset
    record |= {"kind": rejected.kind, "reason": rejected.reason}
    try:
        record["content"] = rejected.content.decode("utf-8")
    except UnicodeDecodeError:
        record["content_base64"] = base64.b64encode(rejected.content).decode("ascii")
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
