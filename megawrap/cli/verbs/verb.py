"""What a verb is, and a command that has been parsed."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterator
from types import ModuleType


@dataclasses.dataclass(frozen=True)
class Verb:
    """A verb: its name (``plan``), or its name and that of an action (``data merge``); a line of help, its options,
    what it does."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Invocation], int]


@dataclasses.dataclass(frozen=True)
class Invocation:
    """A parsed command: the verb, its options, the words that are Hydra overrides, and the words of another command,
    which stand after ``--``."""

    verb: str
    options: argparse.Namespace
    overrides: tuple[str, ...]
    command: tuple[str, ...] = ()


def verbs_of(module: ModuleType) -> Iterator[Verb]:
    """The verbs of a module: itself, if it has ``run``, with ``HELP`` and ``configure``; and each of its ``ACTIONS``,
    verbs that are called by the module's name and theirs."""
    # A verb may be a word that no module can be called, such as import.
    name = getattr(module, "NAME", module.__name__.rsplit(".", 1)[-1])
    if hasattr(module, "run"):
        yield Verb(name, module.HELP, module.configure, module.run)
    for action in getattr(module, "ACTIONS", ()):
        yield dataclasses.replace(action, name=f"{name} {action.name}")
