"""Prints the rows of a Megatron-LM's own parser as JSON: ``probe.py ROOT [PACKAGE_TO_HIDE ...]``.

A script for the Python that has the target, which may be another than megawrap's: it imports nothing of megawrap.
ROOT holds ``megatron/``. The parser is caught where ``parse_args`` hands it to ``extra_args_provider``, so nothing is
parsed.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

_ACTIONS = {
    "_StoreAction": "store",
    "_StoreTrueAction": "store_true",
    "_StoreFalseAction": "store_false",
    "_StoreConstAction": "store_const",
    "_AppendAction": "append",
    "_ExtendAction": "extend",
    "_CountAction": "count",
    "BooleanOptionalAction": "boolean_optional",
}


class _Caught(Exception):
    """Carries the finished parser out of ``parse_args``."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def main(root: str, hidden: list[str]) -> None:
    """Write the rows to stdout; whatever the target prints goes to stderr."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):  # some defaults are read from them
        os.environ.pop(name, None)
    # Python put this file's folder first, whose modules are not meant to be imported by their bare names.
    sys.path[0] = str(Path(__file__).absolute().parents[1])
    light: Any = importlib.import_module("light")
    sys.path[0] = root
    modules: dict[str, Any] = sys.modules
    modules.update(dict.fromkeys(hidden))
    light.install(f"{root}/megatron/training")
    json.dump(rows(catch()), answer)
    answer.close()


def catch() -> argparse.ArgumentParser:
    """The parser that the target's ``parse_args`` makes, with what ROCm's pretrain_gpt.py adds."""
    arguments = importlib.import_module("megatron.training.arguments")
    patch = getattr(arguments, "get_patch_args", None)

    def provider(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        raise _Caught(patch(parser) if patch else parser)

    sys.argv = ["pretrain_gpt.py"]
    try:
        arguments.parse_args(extra_args_provider=provider, ignore_unknown_args=True)
    except _Caught as caught:
        return caught.parser
    sys.exit("parse_args does not call extra_args_provider")


def rows(parser: argparse.ArgumentParser) -> list[dict[str, Any]]:
    """One row for each optional argument, by the first flag's name; shaped as in ``arguments.json``."""
    actions = [one for one in parser._actions if one.option_strings and not isinstance(one, argparse._HelpAction)]
    return sorted((_row(one) for one in actions), key=lambda row: str(row["flags"]))


def _row(action: argparse.Action) -> dict[str, Any]:
    kind = _ACTIONS.get(type(action).__name__, type(action).__name__)
    row = {
        "flags": list(action.option_strings),
        "dest": action.dest,
        "action": kind,
        "type": None if action.type is None else _converter(action.type),
        "nargs": action.nargs if kind == "store" else None,
        "choices": None if action.choices is None else [_plain(one) for one in action.choices],
        "default": _plain(action.default),
    }
    return {key: value for key, value in row.items() if value is not None}


def _converter(function: Any) -> str:
    """``enum`` for a function that looks a member up by its name, whatever the function is called."""
    code = getattr(function, "__code__", None)
    if code is not None:
        named = [function.__globals__.get(name) for name in code.co_names]
        enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
        if function.__name__ in ("<lambda>", "enum_type_handler") and any(
            isinstance(one, enum.EnumMeta) for one in (*named, *enclosed)
        ):
            return "enum"
    name = str(getattr(function, "__name__", type(function).__name__))
    return "lambda" if name == "<lambda>" else name


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name  # the word that the parser takes, of a signal too
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # argparse converts a default that is a string
    if isinstance(value, (list, tuple, set, range)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
