"""The modules of a source tree, and where in it a name comes from."""

from __future__ import annotations

import ast
import dataclasses
import enum
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

# A name that is imported from a module that imports it from another, and so on; more than any tree has.
_LONGEST_CHAIN = 12


class Unreadable(Exception):
    """The arguments cannot be told from the source; the message says what stands in the way."""


@dataclasses.dataclass(frozen=True)
class Imported:
    """``from module import name``, or ``import module`` when ``name`` is None."""

    module: str
    name: str | None


Definition = ast.ClassDef | ast.FunctionDef | ast.expr | Imported


@dataclasses.dataclass(eq=False)
class Module:
    """A parsed file: what each name at its top level is bound to. A name bound to different things, in the two arms of
    a ``try`` say, is in ``ambiguous``."""

    name: str
    path: Path
    names: dict[str, Definition]
    ambiguous: set[str]
    stars: list[str]


@dataclasses.dataclass(frozen=True)
class Found:
    """A definition, and the module that it stands in."""

    module: Module
    node: ast.ClassDef | ast.FunctionDef | ast.expr


class Tree:
    """The source tree below ``root``. ``files`` are those opened so far, as paths relative to the root; ``made`` holds
    the enumeration of each class statement, so that a member is the same one wherever it is named."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: list[str] = []
        self.made: dict[ast.ClassDef, enum.EnumMeta] = {}
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """The module called ``name``; ``None`` when the tree has none.

        Raises:
            Unreadable: when its file is not Python that this Python can parse.
        """
        if name not in self._modules:
            stem = self.root.joinpath(*name.split("."))
            path = next((one for one in (stem.with_suffix(".py"), stem / "__init__.py") if one.is_file()), None)
            self._modules[name] = None if path is None else self._parse(name, path)
        return self._modules[name]

    def find(self, module: Module, name: str) -> Found | Imported | None:
        """What ``name`` is in ``module``, imports followed; ``Imported`` for what is outside the tree or a module;
        ``None`` when it is unknown or ambiguous."""
        for _ in range(_LONGEST_CHAIN):
            node = None if name in module.ambiguous else module.names.get(name)
            if node is None:
                return self._through_stars(module, name)
            if not isinstance(node, Imported):
                return Found(module, node)
            inner = self.module(node.module) if node.name is not None else None
            if inner is None or node.name is None:
                return node
            module, name = inner, node.name
        return None

    def imported(self, one: Imported) -> Found | Imported | None:
        """What an import statement brings."""
        inner = self.module(one.module) if one.name is not None else None
        return one if inner is None or one.name is None else self.find(inner, one.name)

    def _through_stars(self, module: Module, name: str) -> Found | Imported | None:
        if name in module.ambiguous or name in module.names:
            return None
        for star in module.stars:
            inner = self.module(star)
            found = None if inner is None else self.find(inner, name)
            if found is not None:
                return found
        return None

    def _parse(self, name: str, path: Path) -> Module:
        shown = path.relative_to(self.root).as_posix()
        self.files.append(shown)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Megatron's strings with a stray backslash are not the user's concern
                body = ast.parse(path.read_bytes()).body
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            raise Unreadable(f"{shown}: {problem}") from None
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        module = Module(name, path, {}, set(), [])
        for statement in _flat(body):
            _bind(module, statement, package)
        return module


def imports(statement: ast.stmt, package: str) -> Iterator[tuple[str, Imported]]:
    """The names that an import statement binds, and what to."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            bound = alias.asname or alias.name.split(".")[0]
            yield bound, Imported(alias.name if alias.asname else bound, None)
    elif isinstance(statement, ast.ImportFrom):
        source = _absolute(statement, package)
        for alias in statement.names:
            yield alias.asname or alias.name, Imported(source, alias.name)


def _absolute(statement: ast.ImportFrom, package: str) -> str:
    if not statement.level:
        return statement.module or ""
    parts = package.split(".")[: len(package.split(".")) - statement.level + 1]
    return ".".join([*parts, *filter(None, [statement.module])])


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those inside ``if``, ``try`` and ``with`` included."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try | ast.With):
            yield from _flat(statement.body)
            yield from _flat(getattr(statement, "orelse", []))
            for handler in getattr(statement, "handlers", []):
                yield from _flat(handler.body)
            yield from _flat(getattr(statement, "finalbody", []))
        else:
            yield statement


def _bind(module: Module, statement: ast.stmt, package: str) -> None:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for name, source in imports(statement, package):
            if name == "*":
                module.stars.append(source.module)
            else:
                _put(module, name, source)
    elif isinstance(statement, ast.ClassDef | ast.FunctionDef):
        _put(module, statement.name, statement)
    elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Name):
                _put(module, target.id, statement.value)
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        module.ambiguous.add(statement.target.id)


def _put(module: Module, name: str, node: Definition) -> None:
    if name in module.names and not _is_same(module.names[name], node):
        module.ambiguous.add(name)
    module.names[name] = node


def _is_same(one: Definition, other: Definition) -> bool:
    """A name that is defined twice is the second; only a value or an import has an ``else`` to come from."""
    if isinstance(one, ast.ClassDef | ast.FunctionDef) and type(one) is type(other):
        return True
    if isinstance(one, ast.AST) and isinstance(other, ast.AST):
        return ast.dump(one) == ast.dump(other)
    return one == other
