"""Follows the functions that make the parser, statement by statement, and keeps every argument that they would add."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from megawrap.megatron.surface.source.factory import Factory, is_factory
from megawrap.megatron.surface.source.fields import options
from megawrap.megatron.surface.source.frame import Frame
from megawrap.megatron.surface.source.row import Row
from megawrap.megatron.surface.source.tree import Found, Tree, Unreadable, imports
from megawrap.megatron.surface.source.values import UNTOLD, Unknown
from megawrap.megatron.surface.source.words import row

# Stands for the parser, and for any of its groups.
PARSER = type("Parser", (), {"__repr__": lambda _: "parser"})()
_GROUPS = ("add_argument_group", "add_mutually_exclusive_group")
_DEEPEST = 20


class _Return(Exception):
    """The function is over."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


class Walk:
    """``rows`` are the arguments so far; ``untold`` the dests of fields whose flags the source does not tell; ``notes``
    what could not be followed."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.rows: list[Row] = []
        self.untold: list[str] = []
        self.notes: list[str] = []

    def call(self, found: Found, given: Sequence[Any], named: Mapping[str, Any], *, maybe: bool, depth: int = 0) -> Any:
        """Follow a function; what it returns."""
        assert isinstance(found.node, ast.FunctionDef)
        frame = Frame(self.tree, found, {}, maybe, depth)
        spec = found.node.args
        names = [one.arg for one in (*spec.posonlyargs, *spec.args)]
        defaults = dict(zip(reversed(names), reversed(spec.defaults), strict=False))
        defaults |= {one.arg: node for one, node in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if node}
        frame.local = {name: self._value(frame, node) for name, node in defaults.items()}
        frame.local |= dict.fromkeys([name for name in names if name not in defaults], UNTOLD)
        frame.local |= dict(zip(names, given, strict=False)) | dict(named)
        try:
            self._run(frame, found.node.body)
        except _Return as returned:
            return returned.value
        return None

    def _run(self, frame: Frame, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(frame, statement)

    def _statement(self, frame: Frame, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            package = frame.package
            frame.local |= dict(imports(statement, package))
        elif isinstance(statement, ast.Assign):
            value = self._value(frame, statement.value)
            for target in statement.targets:
                self._assign(frame, target, value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._assign(frame, statement.target, self._value(frame, statement.value))
        elif isinstance(statement, ast.AugAssign):
            whole = ast.BinOp(_loaded(statement.target), statement.op, statement.value)
            self._assign(frame, statement.target, self._value(frame, ast.copy_location(whole, statement)))
        elif isinstance(statement, ast.Expr):
            self._value(frame, statement.value)
        elif isinstance(statement, ast.Return):
            raise _Return(None if statement.value is None else self._value(frame, statement.value))
        else:
            self._compound(frame, statement)

    def _compound(self, frame: Frame, statement: ast.stmt) -> None:
        if isinstance(statement, ast.If):
            self._if(frame, statement)
        elif isinstance(statement, ast.For):
            self._for(frame, statement)
        elif isinstance(statement, ast.With):
            self._run(frame, statement.body)
        elif isinstance(statement, ast.Try):
            self._try(frame, statement)

    def _if(self, frame: Frame, statement: ast.If) -> None:
        test = self._value(frame, statement.test)
        if test is not UNTOLD:
            self._run(frame, statement.body if test else statement.orelse)
            return
        outside, frame.maybe = frame.maybe, True
        for branch in (statement.body, statement.orelse):
            try:
                self._run(frame, branch)
            except _Return:
                continue  # it may as well go on
        frame.maybe = outside

    def _try(self, frame: Frame, statement: ast.Try) -> None:
        """The body, taken to succeed; when it imports from outside the tree, that is open, and so is what it binds."""
        package = frame.package
        brought = [one for part in statement.body for _, one in imports(part, package)]
        is_open = any(not isinstance(self.tree.imported(one), Found) for one in brought)
        outside, frame.maybe = frame.maybe, frame.maybe or is_open
        self._run(frame, [*statement.body, *statement.orelse])
        frame.maybe = outside
        if is_open:
            bound = (part.targets for part in statement.body if isinstance(part, ast.Assign))
            for target in (one for targets in bound for one in targets):
                self._assign(frame, target, UNTOLD)
        self._run(frame, statement.finalbody)

    def _for(self, frame: Frame, statement: ast.For) -> None:
        sequence = self._value(frame, statement.iter)
        # vars(group)["_actions"], parser._actions: the arguments so far
        if sequence is UNTOLD and "_actions" in ast.unparse(statement.iter):
            sequence = list(self.rows)
        if sequence is UNTOLD or not isinstance(sequence, list | tuple | set | range):
            self.notes.append(f"{frame.line(statement)}: a loop over {ast.unparse(statement.iter)} is not followed")
            return
        for one in sequence:
            self._assign(frame, statement.target, one)
            self._run(frame, statement.body)

    def _assign(self, frame: Frame, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            frame.local[target.id] = value
        elif isinstance(target, ast.Attribute):
            owner = self._value(frame, target.value)
            if isinstance(owner, Row) and target.attr in ("default", "choices", "nargs", "dest"):
                owner.change(target.attr, value)
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, list | tuple):
            for inner, one in zip(target.elts, value, strict=False):
                self._assign(frame, inner, one)

    def _value(self, frame: Frame, node: ast.expr) -> Any:
        """The value of an expression, its calls followed; ``UNTOLD`` when the source does not tell."""
        if isinstance(node, ast.Call):
            return self._call(frame, node)
        if isinstance(node, ast.Tuple) and any(isinstance(one, ast.Call) for one in node.elts):
            return tuple(self._value(frame, one) for one in node.elts)
        try:
            return frame.evaluator.value(node)
        except Unknown:
            return UNTOLD

    def _call(self, frame: Frame, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            owner = self._value(frame, node.func.value)
            if owner is PARSER:
                return self._parser_method(frame, node.func.attr, node)
            if isinstance(owner, Factory):
                return self._build_group(frame, owner, node)
            if isinstance(owner, list) and node.func.attr in ("append", "extend", "remove", "insert"):
                return getattr(owner, node.func.attr)(*(self._value(frame, one) for one in node.args))
        found = frame.definition(node.func)
        if isinstance(found, Found) and isinstance(found.node, ast.FunctionDef):
            return self._follow(frame, found, node)
        if isinstance(found, Found) and isinstance(found.node, ast.ClassDef) and is_factory(self.tree, found):
            return self._factory(frame, node)
        if frame.evaluator.external(node.func) == "argparse.ArgumentParser":
            return PARSER
        return self._plain_call(frame, node)

    def _plain_call(self, frame: Frame, node: ast.Call) -> Any:
        try:
            return frame.evaluator.value(node)
        except Unknown:
            if any(self._value(frame, one) is PARSER for one in node.args):
                self.notes.append(f"{frame.line(node)}: {ast.unparse(node)} is not followed")
            return UNTOLD

    def _follow(self, frame: Frame, found: Found, node: ast.Call) -> Any:
        """Only calls that are handed the parser, or the whole tree would be followed."""
        given = [self._value(frame, one) for one in node.args]
        named = {word.arg: self._value(frame, word.value) for word in node.keywords if word.arg}
        makes_one = isinstance(found.node, ast.FunctionDef) and "ArgumentParser(" in ast.unparse(found.node)
        if frame.depth < _DEEPEST and (makes_one or any(one is PARSER for one in (*given, *named.values()))):
            return self.call(found, given, named, maybe=frame.maybe, depth=frame.depth + 1)
        return UNTOLD

    def _parser_method(self, frame: Frame, name: str, node: ast.Call) -> Any:
        if name in _GROUPS:
            return PARSER
        if name in ("parse_args", "parse_known_args"):
            raise _Return
        if name == "set_defaults":
            for word in node.keywords:
                for one in self.rows:
                    if one.dest == word.arg:
                        one.change("default", self._value(frame, word.value))
        if name == "add_argument":
            flags = [self._value(frame, one) for one in node.args]
            if UNTOLD in flags:
                self.notes.append(f"{frame.line(node)}: the name of an argument is not told")
            elif flags and all(str(flag).startswith("-") for flag in flags):
                words = {word.arg: word.value for word in node.keywords if word.arg}
                return self._add(row([str(flag) for flag in flags], words, frame.evaluator), frame.maybe)
        return UNTOLD

    def _add(self, made: Row, maybe: bool) -> Row:
        made.maybe = maybe
        before = next((one for one in self.rows if set(one.flags) & set(made.flags)), None)
        if before is None:
            self.rows.append(made)
        elif before.maybe and not maybe:
            self.rows[self.rows.index(before)] = made
        return made

    def _factory(self, frame: Frame, node: ast.Call) -> Factory:
        words = {word.arg: word.value for word in node.keywords}
        named = node.args[0] if node.args else words.get("src_cfg_class")
        found = None if named is None else frame.definition(named)
        excluded = node.args[1] if len(node.args) > 1 else words.get("exclude")
        exclude = None if excluded is None else self._value(frame, excluded)
        if not isinstance(found, Found) or not isinstance(found.node, ast.ClassDef) or exclude is UNTOLD:
            raise Unreadable(f"{frame.line(node)}: {ast.unparse(node)} cannot be told from the source")
        return Factory(found, tuple(exclude or ()))

    def _build_group(self, frame: Frame, factory: Factory, node: ast.Call) -> Any:
        for option in options(self.tree, factory.source, factory.exclude):
            if option.flags:
                self._add(row(option.flags, option.words, option.evaluator), frame.maybe)
            else:
                self.untold.append(option.field)
        return PARSER


def _loaded(target: ast.expr) -> ast.expr:
    """The target of ``x += y``, read."""
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target
