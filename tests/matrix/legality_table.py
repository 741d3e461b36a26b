"""The legality matrix as text: a line for each model and release, short enough to be read and compared."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from legality import RELEASES, Row

HEADER = """\
# What of model x parallel x precision is legal under which Megatron: every preset of conf/model with every one of
# conf/parallel that concerns it (expert parallelism: models with experts) and of conf/precision (on CPU: no FP8).
# The tiny models on CPU, all others on as many MI355X as the layout needs at least, in nodes of 8.
# Made by `python tests/matrix/legality.py --write`; `megawrap explain MW105` tells what a rule says.
#
# model, release, legal of all; then what refuses the rest: the rule, its precisions (none named: all), its layouts.
# "TP 8" stands for all layouts with TP = 8, "all" for all layouts, a name in small letters for that preset alone.
"""


def table(rows: Sequence[Row]) -> str:
    """The whole text."""
    width = max(len(row.model) for row in rows)
    lines = []
    for row in rows:
        if row.release == RELEASES[0]:
            lines.append("")
        legal = sum(not ids for ids in row.cells.values())
        head = f"{row.model:{width}} {row.release:12} {legal:3} of {len(row.cells)}"
        lines.append("  ".join([head, *_refusals(row)]))
    return HEADER + "\n".join(lines) + "\n"


def _refusals(row: Row) -> Iterator[str]:
    layouts = tuple(dict.fromkeys(layout for layout, _ in row.cells))
    formats = tuple(dict.fromkeys(precision for _, precision in row.cells))
    for id in sorted({id for ids in row.cells.values() for id in ids}):
        where: dict[tuple[str, ...], list[str]] = {}  # layouts -> the precisions in which they are refused
        for precision in formats:
            refused = tuple(layout for layout in layouts if id in row.cells[layout, precision])
            where.setdefault(refused, []).append(precision)
        for refused, precisions in where.items():
            if refused:
                named = "" if len(precisions) == len(formats) else f"{' '.join(precisions)}: "
                yield f"[{id} {named}{', '.join(_short(refused, layouts))}]"


def _short(refused: Collection[str], layouts: Sequence[str]) -> Iterator[str]:
    """``refused`` by sizes where all layouts with a size are refused, else by name."""
    if len(refused) == len(layouts):
        yield "all"
        return
    left = list(refused)
    for size in dict.fromkeys(size for layout in layouts for size in sizes(layout)):
        having = {layout for layout in layouts if size in sizes(layout)}
        if len(having) > 1 and having <= set(refused) and having & set(left):
            yield f"{size[0].upper()} {size[1]}"
            left = [layout for layout in left if layout not in having]
    yield from left


def sizes(layout: str) -> list[tuple[str, str]]:
    """``tp2pp4`` -> (tp, 2), (pp, 4)."""
    return re.findall(r"([a-z]+)(\d+)", layout)
