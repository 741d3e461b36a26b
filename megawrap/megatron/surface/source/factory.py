"""Megatron's ``ArgumentGroupFactory``, which makes arguments out of a dataclass."""

from __future__ import annotations

import ast
import dataclasses

from megawrap.megatron.surface.source.tree import Found, Tree

_NAME = "ArgumentGroupFactory"


@dataclasses.dataclass(frozen=True)
class Factory:
    """One, of the dataclass ``source``."""

    source: Found
    exclude: tuple[str, ...]


def is_factory(tree: Tree, found: Found) -> bool:
    """Whether the class is the factory, or derived from it."""
    assert isinstance(found.node, ast.ClassDef)
    if found.node.name == _NAME:
        return True
    bases = (tree.find(found.module, base.id) for base in found.node.bases if isinstance(base, ast.Name))
    inner = (one for one in bases if isinstance(one, Found) and isinstance(one.node, ast.ClassDef))
    return any(is_factory(tree, one) for one in inner)
