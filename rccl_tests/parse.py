"""Reads what rccl-tests and nccl-tests print, of any release since 2019, through any launcher.

Columns are found by the words of the table's header, never by position: releases differ in which columns there are,
and wide numbers push each other aside. A data line begins with two numbers; its measurements are counted from the
right, as many as the header names from the first time on, and what is left between is type, redop and root.

``Avg bus bandwidth`` is never used: it averages all sizes, so an 8 B to 16 GiB sweep of a perfect pair of nodes that
reach 357 GB/s prints 92.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from megawrap.rccl_tests.parse_structured import parse_structured
from megawrap.rccl_tests.perf import WIDTHS, Placement, Row, Run, finish, infer_collective

_PREFIX = re.compile(
    r"""\A(?: \[[^\]\s]*\d\]<std(?:out|err)>:[ ]?             # Open MPI: [1,0]<stdout>:
        | \w{3}[ ]\w{3}[ ][ \d]?\d[ ][\d:]{8}[ ]\d{4}<std(?:out|err)>:[ ]?   # Open MPI with time stamps
        | \[(?:rank|default)\d+\]:[ ]?                      # torchrun
        | \[\d+\][ ]                                        # MPICH
        | [ ]*\d+:[ ]                                       # srun -l
        )""",
    re.VERBOSE,
)
_BEGIN = re.compile(r"(?:rccl|nccl)-tests version \S+ |Collective test starting: |nThreads?:? \d")
_TITLE = re.compile(r"=+ .+ =+$")
_NAME = re.compile(r"(?:Collective test (?:starting|concluded): |(?:^|[ /]))(\w+)_perf\b")
_SHAPE = re.compile(r"nThreads?:? (\d+) nGpus:? (\d+)")
_RANK = re.compile(r"#?\s*Rank\s+(\d+) .*\bon\b")
_FAILURE = re.compile(r"Test (?:NCCL|CUDA|HIP) failure|Test timeout|Invalid number of GPUs|number of requested GPUs")
_BOUNDS = re.compile(r"#? Out of bounds values : (\S+) (OK|FAILED)")
_FOOTER = re.compile(r"#? (?:Out of bounds values|Avg bus bandwidth|Collective test concluded)\b")
_STAMP = re.compile(r"\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
_TIMES = ("time", "cputime")
_PLACEMENT = ["time", "algbw", "busbw", "#wrong"]
_BARE = ["size", "count", "type", "redop", "root", *_PLACEMENT, *_PLACEMENT]
"""Header taken for rows that were pasted without one."""


def parse(text: str, collective: str | None = None) -> list[Run]:
    """All runs in a text, JSON or CSV; an empty list when there is none.

    ``collective`` is what the caller knows to have started; otherwise it comes from the text, or from the columns and
    rates where these leave only one.
    """
    structured = parse_structured(text)
    if structured is not None:
        return structured
    readers = [_Reader(lines) for lines in _split([_PREFIX.sub("", line, count=1) for line in text.splitlines()])]
    return [reader.read(collective) for reader in readers]


def _split(lines: Sequence[str]) -> Iterator[list[str]]:
    """The lines of each run: a new one begins at a header, a table or a title once the last has its table or rows."""
    current: list[str] = []
    begun = tabled = rowed = False
    for line in lines:
        begins, table = bool(_BEGIN.search(line)), _header(line) is not None
        if (begins and (tabled or rowed)) or (rowed and (table or _TITLE.match(line))):
            yield current
            current, begun, tabled, rowed = [], False, False, False
        current.append(line)
        begun, tabled, rowed = begun or begins, tabled or table, rowed or _is_row(line)
    if begun or tabled or rowed:
        yield current


def _header(line: str) -> list[str] | None:
    """The column names, if the line is a table's header."""
    words = line.lstrip("# ").split()
    if line.lstrip().startswith("#") and words[:1] in (["size"], ["bytes"]) and "busbw" in words:
        return [word for word in words if word not in ("timestamp", "date")]
    return None


def _is_row(line: str) -> bool:
    words = line.split()
    return len(words) >= 6 and words[0].isdecimal() and re.fullmatch(r"\d+(?:\.\d+e\+\d+)?", words[1]) is not None


@dataclass(slots=True)
class _Reader:
    """One run, line by line."""

    lines: list[str]
    run: Run = field(default_factory=Run)
    header: list[str] = field(default_factory=lambda: _BARE)
    placed: list[str] = field(default_factory=lambda: ["out_of_place", "in_place"])
    titles: list[str] = field(default_factory=list)
    headings: int = 0
    root: int | None = None
    ranks: int = 0

    def read(self, collective: str | None) -> Run:
        """The whole run."""
        for line in self.lines:
            self._line(line.rstrip())
        run = self.run
        run.ranks = self.ranks or None
        known = collective or run.collective
        run.collective = known or infer_collective(run.rows, run.ranks, reduces=self._reduces(), root=self.root)
        self._judge()
        return finish(run)

    def _line(self, line: str) -> None:
        if header := _header(line):
            self.header, self.placed = header, self.titles or self.placed
        elif _is_row(line):
            self._row(_STAMP.sub("", line).split())
        elif rank := _RANK.match(line):
            self.ranks = max(self.ranks, int(rank[1]) + 1)
        elif _FAILURE.search(line):
            self.run.problem(line.strip(" ."))
        elif "-of-place" in line or "in-place" in line:
            self.titles = [word.replace("-", "_") for word in line.lstrip("# ").split()]
        self._marks(line)

    def _marks(self, line: str) -> None:
        if shape := _SHAPE.search(line):
            self.headings += 1
            # The devices of one process: all there are, unless the list of ranks names more. One tells nothing.
            devices = int(shape[1]) * int(shape[2])
            self.ranks = max(self.ranks, devices if devices > 1 else 0)
        if name := _NAME.search(line):
            self.run.collective = name[1]
        self.run.complete |= bool(_FOOTER.match(line)) and bool(self.run.rows)
        bounds = _BOUNDS.match(line)
        if bounds and bounds[2] == "FAILED":
            self.run.problem(f"out of bounds values: {bounds[1]} FAILED")

    def _row(self, words: list[str]) -> None:
        first = next(index for index, name in enumerate(self.header) if name in _TIMES)
        leading, body = self.header[:first], self.header[first:]
        between, values = words[2 : len(words) - len(body)], words[len(words) - len(body) :]
        if len(words) < len(body) + 2 or len(between) > len(leading):
            self.run.problem(f"a line that does not fit its header: {' '.join(words)}")
            return
        kind = between[0] if between else ""
        try:
            placements = dict(zip(self.placed, self._placements(body, values), strict=False))
        except ValueError:  # another process wrote into the line
            self.run.problem(f"a line that does not fit its header: {' '.join(words)}")
            return
        if leading[-1:] == ["root"] and between and re.fullmatch(r"-?\d+", between[-1]):
            self.root = int(between[-1])
        nbytes = int(words[0])
        self.run.rows.append(Row(bytes=nbytes, count=_count(words[1], nbytes, kind), type=kind, **placements))

    def _placements(self, body: Sequence[str], values: Sequence[str]) -> Iterator[Placement | None]:
        starts = [index for index, name in enumerate(body) if name in _TIMES]
        for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
            yield _placement(dict(zip(body[start:end], values[start:end], strict=True)), self._unit())

    def _unit(self) -> float:
        """Seconds; only the releases whose table begins with ``bytes`` (2019) print milliseconds."""
        return 1e-3 if self.header[0] == "bytes" else 1e-6

    def _reduces(self) -> bool:
        return "redop" in self.header or "op" in self.header

    def _judge(self) -> None:
        run = self.run
        if self.headings > 1:
            text = "separate runs of one rank each, as when a binary built without MPI is started by mpirun"
            run.problem(f"the header was printed {self.headings} times: {text}")
        if run.ranks == 1 and not run.peak_busbw:
            run.problem("one rank only: nothing crossed a link")
        if run.complete:
            return
        if run.rows:
            run.problem("no footer: the run was killed, or the output is cut off")
        elif not run.problems:
            run.problem("no rows: the first collective hung, or the run was killed")


def _count(word: str, nbytes: int, kind: str) -> int:
    """``1.57286e+06`` has lost digits, which the size still tells when it rounds to the same word."""
    exact = nbytes // WIDTHS.get(kind, 1)
    return exact if f"{exact:g}" == word else int(float(word))


def _placement(words: dict[str, str], unit: float) -> Placement | None:
    time = words.get("time") or words["cputime"]
    if "N/A" in (time, words["algbw"], words["busbw"]):
        return None
    return Placement(
        seconds=float(time) * unit, algbw=float(words["algbw"]), busbw=float(words["busbw"]), wrong=_wrong(words)
    )


def _wrong(words: dict[str, str]) -> int | None:
    """Wrong elements. Old releases print the largest error instead: only 0 tells a count."""
    if (count := words.get("#wrong")) is not None:
        return None if count == "N/A" else int(float(count))
    error = words.get("error") or words.get("res")
    return 0 if error not in (None, "N/A") and float(error) == 0 else None
