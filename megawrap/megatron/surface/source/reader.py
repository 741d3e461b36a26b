"""The arguments that a source tree shows, completed from the nearest release where it leaves something open."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from megawrap.megatron.surface.source.row import Row
from megawrap.megatron.surface.source.tree import Found, Tree, Unreadable
from megawrap.megatron.surface.source.walk import PARSER, Walk
from megawrap.megatron.surface.surface import Surface

ARGUMENTS = "megatron.training.arguments"


@dataclasses.dataclass(frozen=True)
class Source:
    """What the source tells: rows as in ``arguments.json``, and what it left open, each as a line for people."""

    rows: list[dict[str, Any]]
    notes: tuple[str, ...]


def read(tree: Tree, nearest: Surface) -> Source:
    """The arguments of the tree, with those that ROCm's pretrain_gpt.py adds; the tree's ``files`` are then those that
    make its parser.

    Raises:
        Unreadable: when the source does not show how its parser is made.
    """
    module = tree.module(ARGUMENTS)
    if module is None:
        raise Unreadable("there is no megatron/training/arguments.py")
    walk = Walk(tree)
    for name, given in (("parse_args", []), ("get_patch_args", [PARSER])):
        found = module.names.get(name)
        if isinstance(found, ast.FunctionDef):
            walk.call(Found(module, found), given, {}, maybe=False)
    if not walk.rows:
        raise Unreadable("megatron/training/arguments.py: parse_args adds no arguments")
    rows, notes = _settled(walk, nearest)
    return Source([one.as_dict() for one in rows], tuple(notes))


def _settled(walk: Walk, nearest: Surface) -> tuple[list[Row], list[str]]:
    """Nothing open any more, and a note for each thing that was."""
    rows: list[Row] = []
    notes = list(walk.notes)
    by_flag = {flag: argument for argument in nearest.arguments for flag in argument.flags}
    for one in walk.rows:
        known = next((by_flag[flag] for flag in one.flags if flag in by_flag), None)
        if one.maybe:
            kept = "kept, as in" if known else "left out, as not in"
            notes.append(f"{one.flags[0]}: added under a condition; {kept} the release")
        if one.maybe and known is None:
            continue
        if one.unknown:
            taken = "taken from the release" if known else "not told, and not in the release"
            notes.append(f"{one.flags[0]}: {', '.join(sorted(one.unknown))} {taken}")
            one.settle(known)
        rows.append(one)
    for dest in walk.untold:
        notes.append(f"{dest}: flags taken from the release")
        rows += [Row.of(argument) for argument in nearest.arguments if argument.dest == dest]
    return sorted(rows, key=lambda one: str(one.flags)), notes
