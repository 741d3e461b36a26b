"""The value of an expression, as far as it follows from the source alone."""

from __future__ import annotations

import ast
import enum
import operator
import signal
from collections.abc import Callable, Mapping
from typing import Any

from megawrap.megatron.surface.source.row import Row
from megawrap.megatron.surface.source.tree import Found, Imported, Module, Tree
from megawrap.megatron.surface.source.values import UNTOLD, Unknown

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (bool, dict, float, int, len, list, max, min, range, set, sorted, str, tuple)
}  # fmt: skip
_FORMS: dict[type[ast.expr], Callable[[Evaluator, Any], Any]]
_ENUMS: dict[str, Any] = {
    "Enum": enum.Enum,
    "IntEnum": enum.IntEnum,
    "StrEnum": enum.Enum,
    "Flag": enum.Flag,
    "IntFlag": enum.IntFlag,
}
_DEEPEST = 40


class Evaluator:
    """Evaluates expressions of one module; ``local`` are the values of names that its function has bound."""

    def __init__(self, tree: Tree, module: Module, local: Mapping[str, Any] | None = None, depth: int = 0) -> None:
        self.tree = tree
        self.module = module
        self.local = {} if local is None else local
        self._depth = depth

    def value(self, node: ast.expr) -> Any:
        """The value.

        Raises:
            Unknown: when it depends on more than the source.
        """
        form = _FORMS.get(type(node))
        if form is None or self._depth > _DEEPEST:
            raise Unknown(ast.unparse(node))
        try:
            return form(self, node)
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError):
            raise Unknown(ast.unparse(node)) from None

    def name(self, node: ast.Name) -> Any:
        """The value of a name: bound in the function, at the top of the module, or in one that it imports from."""
        if node.id in self.local:
            bound = self.local[node.id]
            if bound is UNTOLD:
                raise Unknown(node.id)
            return self._of(self.tree.imported(bound), node) if isinstance(bound, Imported) else bound
        return self._of(self.tree.find(self.module, node.id), node)

    def attribute(self, node: ast.Attribute) -> Any:
        """``Enum.member``, ``member.value``, or a constant of the signal module; else unknown."""
        if isinstance(node.value, ast.Name) and self.external(node.value) == "signal":
            return getattr(signal, node.attr)
        owner = self.value(node.value)
        if isinstance(owner, Row) and node.attr in ("option_strings", "dest", "default", "choices"):
            return getattr(owner, node.attr)
        if isinstance(owner, enum.EnumMeta) or (isinstance(owner, enum.Enum) and node.attr in ("name", "value")):
            return getattr(owner, node.attr)
        raise Unknown(ast.unparse(node))

    def call(self, node: ast.Call) -> Any:
        """A call of a plain built-in, or of a function that reads the environment: its fallback."""
        called = ast.unparse(node.func)
        if called == "isinstance" and isinstance(owner := self.value(node.args[0]), Row):
            return owner.is_made_by(ast.unparse(node.args[1]))
        if called in ("os.getenv", "os.environ.get"):
            return self.value(node.args[1]) if len(node.args) > 1 else None
        if called not in _FUNCTIONS or called in self.module.names:
            raise Unknown(ast.unparse(node))
        named = {word.arg: self.value(word.value) for word in node.keywords if word.arg}
        return _FUNCTIONS[called](*map(self.value, node.args), **named)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> list[Any]:
        """A comprehension over one sequence."""
        (loop,) = node.generators
        if not isinstance(loop.target, ast.Name):
            raise Unknown(ast.unparse(node))
        found = []
        for one in self.value(loop.iter):
            inner = Evaluator(self.tree, self.module, {**self.local, loop.target.id: one}, self._depth + 1)
            if all(inner.value(test) for test in loop.ifs):
                found.append(inner.value(node.elt))
        return found

    def external(self, node: ast.expr) -> str | None:
        """The dotted name of what ``node`` names outside the tree: ``argparse.ArgumentParser``."""
        if isinstance(node, ast.Attribute):
            owner = self.external(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        if not isinstance(node, ast.Name):
            return None
        found = self.local.get(node.id) or self.tree.find(self.module, node.id)
        if not isinstance(found, Imported):
            return None
        return found.module if found.name is None else f"{found.module}.{found.name}"

    def _of(self, found: Found | Imported | None, node: ast.expr) -> Any:
        if isinstance(found, Imported) and found.module == "signal":
            return getattr(signal, found.name or "")
        if not isinstance(found, Found) or isinstance(found.node, ast.FunctionDef):
            raise Unknown(ast.unparse(node))
        inner = Evaluator(self.tree, found.module, depth=self._depth + 1)
        return inner.enumeration(found.node) if isinstance(found.node, ast.ClassDef) else inner.value(found.node)

    def enumeration(self, node: ast.ClassDef) -> enum.EnumMeta:
        """The enumeration that a class statement makes.

        Raises:
            Unknown: when it is another kind of class.
        """
        if node in self.tree.made:
            return self.tree.made[node]
        kind = next((_ENUMS[name] for name in (ast.unparse(base).split(".")[-1] for base in node.bases)
                     if name in _ENUMS), None)  # fmt: skip
        if kind is None:
            raise Unknown(node.name)
        members: dict[str, Any] = {}
        for statement in node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name = statement.targets[0].id
                is_auto = isinstance(statement.value, ast.Call) and ast.unparse(statement.value.func).endswith("auto")
                members[name] = enum.auto() if is_auto else self.value(statement.value)
        self.tree.made[node] = kind(node.name, members)
        return self.tree.made[node]


def _formatted(self: Evaluator, node: ast.JoinedStr) -> str:
    parts = (one.value if isinstance(one, ast.FormattedValue) else one for one in node.values)
    return "".join(str(self.value(one)) for one in parts)


def _compared(self: Evaluator, node: ast.Compare) -> bool:
    left = self.value(node.left)
    for compare, right in zip(node.ops, map(self.value, node.comparators), strict=True):
        if not _COMPARISONS[type(compare)](left, right):
            return False
        left = right
    return True


def _joined(self: Evaluator, node: ast.BoolOp) -> Any:
    """As Python does: later operands are not looked at when an earlier one decides."""
    value: Any = None
    for one in node.values:
        value = self.value(one)
        if bool(value) == isinstance(node.op, ast.Or):
            break
    return value


_FORMS = {
    ast.Constant: lambda _, node: node.value,
    ast.Name: Evaluator.name,
    ast.Attribute: Evaluator.attribute,
    ast.Call: Evaluator.call,
    ast.ListComp: Evaluator.comprehension,
    ast.SetComp: Evaluator.comprehension,
    ast.GeneratorExp: Evaluator.comprehension,
    ast.List: lambda self, node: [self.value(one) for one in node.elts],
    ast.Tuple: lambda self, node: tuple(self.value(one) for one in node.elts),
    ast.Set: lambda self, node: {self.value(one) for one in node.elts},
    ast.Dict: lambda self, node: dict(zip(map(self.value, node.keys), map(self.value, node.values), strict=True)),
    ast.UnaryOp: lambda self, node: _UNARY[type(node.op)](self.value(node.operand)),
    ast.BinOp: lambda self, node: _BINARY[type(node.op)](self.value(node.left), self.value(node.right)),
    ast.BoolOp: _joined,
    ast.Compare: _compared,
    ast.IfExp: lambda self, node: self.value(node.body if self.value(node.test) else node.orelse),
    ast.JoinedStr: _formatted,
    ast.Subscript: lambda self, node: self.value(node.value)[self.value(node.slice)],
}  # fmt: skip
