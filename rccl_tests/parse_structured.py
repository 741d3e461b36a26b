"""The files that rccl-tests and nccl-tests write: ``-J`` (an object), ``-Z json`` (a list) and ``-Z csv``."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from megawrap.rccl_tests.perf import WIDTHS, Placement, Row, Run, finish


def parse_structured(text: str) -> list[Run] | None:
    """The runs in such a file; None when the text is of none of these forms."""
    text = text.lstrip()
    if not (text.startswith("numCycle,") or (text.startswith(("{", "[")) and _MARK.search(text))):
        return None
    try:
        content = _csv_rows(text) if text.startswith("numCycle,") else json.loads(text)
        return [_report(content)] if isinstance(content, dict) else _flat(content)
    except json.JSONDecodeError:
        return [Run(problems=["the report is cut off: the run was killed"])]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return [Run(problems=[f"the report is not of a known form ({type(error).__name__}: {error})"])]


def _report(report: Mapping[str, Any]) -> Run:
    results = report.get("results", ())
    run = Run(collective=_reported_name(report), complete="end_time" in report)
    run.ranks = len(report.get("config", {}).get("devices", ())) or None
    for row in results:
        placements = {place: _reported(row.get(place)) for place in ("out_of_place", "in_place")}
        run.rows.append(Row(bytes=row["size"], count=row["count"], type=row["type"], **placements))
    for error in filter(None, report.get("errors", ())):
        run.problem(str(error))
    bounds = report.get("out_of_bounds", {})
    if bounds.get("okay") == "false":  # booleans are strings there
        run.problem(f"out of bounds values: {bounds.get('count')} FAILED")
    if not run.complete:
        run.problem("the report has no end: the run was killed")
    return finish(run)


def _reported_name(report: Mapping[str, Any]) -> str | None:
    name = next((row["experiment_name"] for row in report.get("results", ()) if row.get("experiment_name")), None)
    binary = re.search(r"(\w+)_perf(?:_mpi)?$", str(next(iter(report.get("args", ())), "")))
    return _snake(name) if name else binary[1] if binary else None


def _reported(values: Mapping[str, Any] | None) -> Placement | None:
    if values is None:
        return None
    microseconds = values["time"] if "time" in values else values["cpu_time"]
    wrong = values["nwrong"]
    rates = {"algbw": values["alg_bw"], "busbw": values["bus_bw"]}
    return Placement(seconds=microseconds / 1e6, **rates, wrong=None if wrong is None else int(wrong))


def _flat(rows: Iterable[Mapping[str, Any]]) -> list[Run]:
    """One row for each size and placement, grouped by cycle and collective; the file appears only at the end."""
    return [_flat_run(list(group)) for _, group in itertools.groupby(rows, lambda row: (row["numCycle"], row["name"]))]


def _flat_run(rows: Sequence[Mapping[str, Any]]) -> Run:
    run = Run(collective=_snake(rows[0]["name"]), complete=True)
    run.ranks = int(rows[0]["ranks"]) if "ranks" in rows[0] else None
    # The count is not in the file.
    for (nbytes, kind), group in itertools.groupby(rows, lambda row: (int(row["size"]), str(row["type"]))):
        placed = {("out_of_place", "in_place")[int(row["inPlace"])]: _flat_placement(row) for row in group}
        run.rows.append(Row(bytes=nbytes, count=nbytes // WIDTHS.get(kind, 1), type=kind, **placed))
    return finish(run)


def _flat_placement(row: Mapping[str, Any]) -> Placement:
    wrong = None if row["wrong"] == "N/A" else int(row["wrong"])
    rates = {"algbw": float(row["algBw"]), "busbw": float(row["busBw"])}
    return Placement(seconds=float(row["time"]) / 1e6, **rates, wrong=wrong)


def _csv_rows(text: str) -> list[dict[str, str]]:
    header, *rows = csv.reader(io.StringIO(text))
    names = [_CSV_NAMES.get(name, name) for name in header]
    # Builds with MPI write the number of nodes after the collective and forget it in the header.
    longer = [*names[:2], "nodes", *names[2:]]
    return [dict(zip(longer if len(row) > len(names) else names, row, strict=False)) for row in rows if row]


_CSV_NAMES = {"collective": "name", "inplace": "inPlace", "algbw": "algBw", "busbw": "busBw", "#wrong": "wrong"}
_MARK = re.compile(r'"(?:numCycle|start_time|results)"')


def _snake(name: str) -> str:
    """``all_reduce`` for ``AllReduce``; AlltoAll and SendRecv are one word each."""
    known = {"alltoall": "alltoall", "alltoallv": "alltoallv", "sendrecv": "sendrecv", "hypercube": "hypercube"}
    return known.get(name.lower()) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
