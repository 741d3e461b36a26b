"""One ``add_argument`` call as a row, shaped as in ``arguments.json``."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from megawrap.megatron.surface.source.evaluate import Evaluator
from megawrap.megatron.surface.source.row import Row
from megawrap.megatron.surface.source.tree import Found
from megawrap.megatron.surface.source.values import Unknown, plain

_CLASSES = {"BooleanOptionalAction": "boolean_optional"}
_SWITCHED = {"store_true": False, "store_false": True}

# What add_argument is given: an expression, or a value that is already known.
Words = Mapping[str, Any]


def row(flags: Sequence[str], words: Words, evaluator: Evaluator) -> Row:
    """The row that ``add_argument(*flags, **words)`` makes."""
    unknown: set[str] = set()

    def told(name: str, read: Callable[[Any], Any], otherwise: Any = None) -> Any:
        if name not in words:
            return otherwise
        given = words[name]
        try:
            return read(evaluator.value(given) if isinstance(given, ast.expr) else given)
        except (Unknown, TypeError):
            unknown.add(name)
            return otherwise if name == "dest" else None

    action = _action(words.get("action", "store"))
    names = list(flags)
    if action == "boolean_optional":
        names += [f"--no-{flag[2:]}" for flag in flags if flag.startswith("--")]
    long = next((flag for flag in names if flag.startswith("--")), names[0])
    return Row(
        flags=names,
        dest=told("dest", str, long.lstrip("-").replace("-", "_")),
        action=action,
        type=_type(words.get("type"), evaluator, unknown),
        nargs=told("nargs", lambda value: value if action == "store" else None),
        choices=told("choices", lambda value: None if value is None else plain(list(value))),
        default=told("default", plain, _SWITCHED.get(action)),
        unknown=unknown,
    )


def _action(given: Any) -> str:
    if isinstance(given, ast.Constant):
        return str(given.value)
    if isinstance(given, ast.expr):
        name = ast.unparse(given).split(".")[-1]
        return _CLASSES.get(name, name)
    return str(given)


def _type(given: Any, evaluator: Evaluator, unknown: set[str]) -> str | None:
    """The converter's name; ``enum`` for one that looks a member up by its name."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, ast.Lambda):
        return "enum" if any(_is_enum(node, evaluator) for node in ast.walk(given.body)) else "lambda"
    if isinstance(given, ast.Name):
        found = evaluator.tree.find(evaluator.module, given.id)
        is_function = isinstance(found, Found) and isinstance(found.node, ast.FunctionDef)
        return found.node.name if is_function else given.id  # type: ignore[union-attr]
    if isinstance(given, ast.Attribute):
        return given.attr
    unknown.add("type")
    return None


def _is_enum(node: ast.AST, evaluator: Evaluator) -> bool:
    if not isinstance(node, ast.Name):
        return False
    try:
        return isinstance(evaluator.value(node), enum.EnumMeta)
    except Unknown:
        return False
