"""Which layers have experts: Megatron's ``--moe-layer-freq``."""

from __future__ import annotations

import ast
import re
from typing import Any

# Megatron evaluates the words as Python; here they are read: lists, whole numbers, + and *.
_ALPHABET = re.compile(r"[0-9\[\]()+*,\s]*")
# More layers than any model has, so that a slip such as [1]*99999999 costs nothing.
_LONGEST = 100_000


def expert_layers(frequency: int | str | list[int] | None, num_layers: int) -> list[bool]:
    """For each layer whether it has experts. ``frequency`` is a number N (every N-th layer from the first on, ``None``
    being 1), a list with 0 for a dense layer and 1 for one with experts, or words that say either: ``"2"``,
    ``"([0]*3+[1]*58)"``.

    Source: Megatron-LM core_v0.19.0 megatron/training/arguments.py (moe_freq_type) and
    megatron/core/models/gpt/gpt_layer_specs.py.

    Raises:
        ValueError: when it says neither, or a list has other numbers or another length than ``num_layers``.
    """
    value = read_pattern(frequency) if isinstance(frequency, str) else 1 if frequency is None else frequency
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return [layer % value == 0 for layer in range(num_layers)]
    if not isinstance(value, list) or any(flag not in (0, 1) for flag in value):
        raise ValueError(f"{frequency!r} is neither a positive number nor a list of 0 and 1")
    if len(value) != num_layers:
        raise ValueError(f"{frequency!r} describes {len(value)} layers, and the model has {num_layers}")
    return [flag == 1 for flag in value]


def read_pattern(words: str) -> int | list[int]:
    """``"2"`` → 2, ``"([0]*1+[1]*3)"`` → ``[0, 1, 1, 1]``.

    Raises:
        ValueError: for anything else.
    """
    if "[" not in words:
        return int(words)
    if not _ALPHABET.fullmatch(words):
        raise ValueError(f"{words!r}: only whole numbers, lists, brackets, + and * can be read")
    try:
        value = _value(ast.parse(words.strip(), mode="eval").body)
    except (SyntaxError, TypeError) as problem:
        raise ValueError(f"{words!r} cannot be read") from problem
    assert isinstance(value, int | list)
    return value


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List):
        return [_value(element) for element in node.elts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        left, right = _value(node.left), _value(node.right)
        return left + right if isinstance(node.op, ast.Add) else _times(left, right)
    raise TypeError(f"{type(node).__name__} has no place in a pattern")


def _times(left: Any, right: Any) -> Any:
    long = {type(left), type(right)} == {list, int}
    count, items = (left, right) if isinstance(left, int) else (right, left)
    if long and count * len(items) > _LONGEST:
        raise TypeError(f"a pattern of {count * len(items)} layers")
    return left * right
