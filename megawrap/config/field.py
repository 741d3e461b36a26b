"""How a section declares an option: its Megatron argument and its legal words stand in the field itself, once."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Sequence
from typing import Any


def option(default: Any = None, *, choices: Sequence[str] = (), flag: str | None = None) -> Any:
    """A field of a section. ``choices`` are its only legal words (empty: any); ``None`` means "not set"."""
    metadata = {"flag": flag, "choices": tuple(choices)}
    if isinstance(default, list | dict):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def arg(flag: str, default: Any = None) -> Any:
    """A field that becomes the Megatron argument ``flag``.

    A boolean field names the positive spelling (``--bias-linear``) even where Megatron only has the negative one
    (``--disable-bias-linear``): the compiler finds whichever expresses the value on the target release.
    """
    return option(default, flag=flag)


@functools.cache
def docstrings(section: type) -> dict[str, str]:
    """Field name → the docstring under it. Read from the source, so only on the way to ``explain`` and to the docs."""
    body = ast.parse(textwrap.dedent(inspect.getsource(section))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        is_field = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if is_field and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[field.target.id] = inspect.cleandoc(str(after.value.value))  # type: ignore[attr-defined]
    return found
