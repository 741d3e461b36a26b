"""Arguments that Megatron makes out of the fields of a dataclass, by the rules of its ``ArgumentGroupFactory``
(Megatron-LM core_v0.19.0, megatron/training/argument_utils.py)."""

from __future__ import annotations

import ast
import dataclasses
import enum
from collections.abc import Collection, Iterator
from typing import Any

from megawrap.megatron.surface.source.evaluate import Evaluator
from megawrap.megatron.surface.source.tree import Found, Imported, Tree, Unreadable
from megawrap.megatron.surface.source.values import Unknown, plain

_PYTHONS_OWN = ("abc", "typing", "typing_extensions")
_FACTORIES: dict[str, Any] = {"list": list, "dict": dict, "set": set, "tuple": tuple}


class _NoConverter(Exception):
    """A type that no converter stands for."""


@dataclasses.dataclass
class Option:
    """What the factory hands to ``add_argument`` for one field; no flags when the source does not tell them."""

    field: str
    flags: list[str]
    words: dict[str, Any]
    evaluator: Evaluator


def options(tree: Tree, found: Found, exclude: Collection[str]) -> Iterator[Option]:
    """An option for each field of the dataclass, those of its bases first."""
    for name, (owner, statement) in _fields(tree, found).items():
        if name in exclude:
            continue
        evaluator = Evaluator(tree, owner.module)
        given = _field_words(statement.value)
        if "init" not in given or ast.unparse(given["init"]) != "False":
            yield _option(name, statement.annotation, given, evaluator)


def _fields(tree: Tree, found: Found) -> dict[str, tuple[Found, ast.AnnAssign]]:
    assert isinstance(found.node, ast.ClassDef)
    fields: dict[str, tuple[Found, ast.AnnAssign]] = {}
    for base in reversed(found.node.bases):
        owner = _base(tree, found, base)
        if owner is not None:
            fields.update(_fields(tree, owner))
    if any("dataclass" in ast.unparse(decorator) for decorator in found.node.decorator_list):
        for statement in filter(_is_field, found.node.body):
            assert isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
            fields[statement.target.id] = (found, statement)
    return fields


def _is_field(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
        return False
    return not ast.unparse(statement.annotation).split("[")[0].endswith(("ClassVar", "InitVar", "KW_ONLY"))


def _base(tree: Tree, found: Found, base: ast.expr) -> Found | None:
    """The class that a base names; ``None`` for one of Python's own, which has no fields.

    Raises:
        Unreadable: when it is neither, so that fields might be missed.
    """
    plain_name = base.value if isinstance(base, ast.Subscript) else base
    name = Evaluator(tree, found.module).external(plain_name)
    owner = tree.find(found.module, plain_name.id) if isinstance(plain_name, ast.Name) else None
    if name is not None and "." in name and not isinstance(owner, Found):
        module, _, member = name.rpartition(".")
        owner = tree.imported(Imported(module, member))
    if isinstance(owner, Found) and isinstance(owner.node, ast.ClassDef):
        return owner
    if ast.unparse(base) == "object" or (name or "").split(".")[0] in _PYTHONS_OWN:
        return None
    raise Unreadable(f"{found.module.path.name}: the base {ast.unparse(base)} cannot be told from the source")


def _field_words(value: ast.expr | None) -> dict[str, ast.expr]:
    """The arguments of ``field(...)``; for a plain value, its default."""
    if isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] == "field":
        return {word.arg: word.value for word in value.keywords if word.arg}
    return {} if value is None else {"default": value}


def _option(name: str, annotation: ast.expr, given: dict[str, ast.expr], evaluator: Evaluator) -> Option:
    flag = f"--{name.replace('_', '-')}"
    meta = _meta(given.get("metadata"))
    option = Option(name, [flag], {"dest": name, "default": _default(given, evaluator)}, evaluator)
    try:
        option.words.update(_converted(annotation, evaluator))
        if option.words["type"] == "bool":
            _make_switch(option, flag)
    except _NoConverter:
        if not meta:
            option.flags = []
    try:
        names = meta.pop("arg_names", None)
        option.flags = option.flags if names is None else evaluator.value(names)
    except Unknown:
        option.flags = []
    option.words.update(meta)
    return option


def _make_switch(option: Option, flag: str) -> None:
    del option.words["type"]
    default = option.words["default"]
    if isinstance(default, ast.expr):  # not told: neither is which way the switch goes
        raise _NoConverter
    option.words["action"] = (
        "store_true" if default is False or (default == 0 and default is not None) else "store_false"
    )
    if option.words["action"] == "store_false":
        option.flags = [flag.replace("--", "--no-", 1), flag.replace("--", "--disable-", 1)]


def _meta(metadata: ast.expr | None) -> dict[str, Any]:
    """``metadata={"argparse_meta": {...}}``: words that come before what the field's type tells."""
    found = _items(metadata).get("argparse_meta")
    return dict(_items(found))


def _items(node: ast.expr | None) -> dict[str, ast.expr]:
    if not isinstance(node, ast.Dict):
        return {}
    pairs = zip(node.keys, node.values, strict=True)
    return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}


def _default(given: dict[str, ast.expr], evaluator: Evaluator) -> Any:
    """The value, or its expression when the source does not tell it."""
    factory = given.get("default_factory")
    try:
        if factory is None:
            return plain(evaluator.value(given["default"])) if "default" in given else None
        if isinstance(factory, ast.Lambda):
            return plain(evaluator.value(factory.body))
        return plain(_FACTORIES[ast.unparse(factory)]())
    except (Unknown, KeyError):
        return factory or given["default"]


def _converted(annotation: ast.expr, evaluator: Evaluator) -> dict[str, Any]:
    """The words type, choices and nargs that an annotation becomes."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return _converted(ast.parse(annotation.value, mode="eval").body, evaluator)
        except SyntaxError:
            raise _NoConverter from None
    if isinstance(annotation, ast.BinOp):
        return _optional([annotation.left, annotation.right], evaluator)
    if isinstance(annotation, ast.Subscript):
        return _subscripted(ast.unparse(annotation.value).split(".")[-1], annotation.slice, evaluator)
    return _named(annotation, evaluator)


def _optional(members: list[ast.expr], evaluator: Evaluator) -> dict[str, Any]:
    if len(members) < 2 or not (isinstance(members[1], ast.Constant) and members[1].value is None):
        raise _NoConverter
    return _converted(members[0], evaluator)


def _subscripted(kind: str, inner: ast.expr, evaluator: Evaluator) -> dict[str, Any]:
    members = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
    if kind == "Optional":
        return _converted(inner, evaluator)
    if kind == "Union":
        return _optional(members, evaluator)
    if kind in ("list", "List") and len(members) == 1:
        return {**_converted(inner, evaluator), "nargs": "+"}
    if kind == "Literal":
        try:
            choices = [evaluator.value(one) for one in members]
        except Unknown:
            raise _NoConverter from None
        return {"type": type(choices[0]).__name__, "choices": choices}
    raise _NoConverter


def _named(annotation: ast.expr, evaluator: Evaluator) -> dict[str, Any]:
    if isinstance(annotation, ast.Name):
        found = evaluator.tree.find(evaluator.module, annotation.id)
        if isinstance(found, Found) and isinstance(found.node, ast.expr):  # an alias: Mode = Literal["a", "b"]
            return _converted(found.node, Evaluator(evaluator.tree, found.module))
        if isinstance(found, Imported) and found.module == "typing":
            raise _NoConverter
    try:
        value = evaluator.value(annotation)
    except Unknown:
        value = None
    if isinstance(value, enum.EnumMeta):
        return {"type": "enum", "choices": list(value)}
    return {"type": ast.unparse(annotation).split(".")[-1]}
