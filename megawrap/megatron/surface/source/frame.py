"""A function being followed: what its names are bound to."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from megawrap.megatron.surface.source.evaluate import Evaluator
from megawrap.megatron.surface.source.tree import Found, Imported, Tree


@dataclasses.dataclass
class Frame:
    """A function of ``tree``, ``depth`` calls down. ``local`` are its names; ``maybe``: it is under a condition that
    the source does not decide."""

    tree: Tree
    found: Found
    local: dict[str, Any]
    maybe: bool
    depth: int

    @property
    def evaluator(self) -> Evaluator:
        """Evaluates expressions of the function."""
        return Evaluator(self.tree, self.found.module, self.local)

    @property
    def package(self) -> str:
        """The package that its relative imports start from."""
        module = self.found.module
        return module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]

    def line(self, node: ast.AST) -> str:
        """Where ``node`` stands, for people."""
        return f"{self.found.module.path.name}:{getattr(node, 'lineno', 0)}"

    def definition(self, node: ast.expr) -> Found | Imported | None:
        """What a name in the function stands for."""
        if isinstance(node, ast.Attribute):
            owner = self.evaluator.external(node.value)
            return None if owner is None else self.tree.imported(Imported(owner, node.attr))
        if not isinstance(node, ast.Name):
            return None
        if node.id in self.local:
            bound = self.local[node.id]
            return self.tree.imported(bound) if isinstance(bound, Imported) else None
        return self.tree.find(self.found.module, node.id)
