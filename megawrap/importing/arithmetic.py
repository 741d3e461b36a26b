"""The shell's arithmetic: whole numbers, + - * / %, comparisons, ! && and ||."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable


def evaluate(text: str, value_of: Callable[[str], int]) -> int:
    """The value of ``text``, the inside of ``$(( ))``; ``value_of`` looks a bare name up.

    Raises:
        ValueError: for what is not understood here, and a division by zero.
    """
    source = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or "))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return _value(ast.parse(source.strip(), mode="eval").body, value_of)
    except (SyntaxError, ZeroDivisionError, MemoryError, RecursionError) as problem:
        raise ValueError(str(problem)) from problem


def _value(node: ast.expr, value_of: Callable[[str], int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return value_of(node.id)
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](_value(node.operand, value_of))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_value(node.left, value_of), _value(node.right, value_of))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        compare = _COMPARISONS[type(node.ops[0])]
        return int(compare(_value(node.left, value_of), _value(node.comparators[0], value_of)))
    if isinstance(node, ast.BoolOp):
        values = [bool(_value(one, value_of)) for one in node.values]
        return int(all(values) if isinstance(node.op, ast.And) else any(values))
    raise ValueError("not arithmetic that is understood here")


def _quotient(first: int, second: int) -> int:
    """Division as the shell does it: towards zero."""
    quotient = abs(first) // abs(second)
    return quotient if (first < 0) == (second < 0) else -quotient


_UNARY: dict[type, Callable[[int], int]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: lambda value: int(not value),
}
_BINARY: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _quotient,
    ast.Mod: lambda first, second: first - second * _quotient(first, second),
}
_COMPARISONS: dict[type, Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
