"""A training command in words, and what of it could not be placed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Kind = Literal["argument", "environment", "launcher", "program", "script"]


@dataclasses.dataclass(frozen=True)
class Word:
    """One word of a command. ``problem`` says why its text is not known without running something; ``line`` is where
    it stands in a script."""

    text: str
    line: int | None = None
    problem: str | None = None


@dataclasses.dataclass(frozen=True)
class Unplaced:
    """Words that the configuration does not hold. ``needed`` is false where nothing is lost by that."""

    kind: Kind
    words: str
    reason: str
    line: int | None = None
    needed: bool = True

    @classmethod
    def of(cls, kind: Kind, words: Sequence[Word], reason: str, *, needed: bool = True) -> Unplaced:
        """From the words themselves."""
        unknown = [word for word in words if word.problem is not None]
        line = next((word.line for word in [*unknown, *words] if word.line is not None), None)
        return cls(kind, " ".join(word.text for word in words), reason, line, needed)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, documented in docs/json.md."""
        return dataclasses.asdict(self)


def needs_running(problem: str) -> str:
    """The reason why a word with ``problem`` is not placed."""
    return f"known only by running the script: {problem}"


@dataclasses.dataclass(frozen=True)
class Command:
    """A training command: environment (``None``: unset), keys of the configuration that its launcher words set, the
    program (``None``: only arguments were given) and the program's arguments."""

    source: str
    environment: Mapping[str, str | None]
    placed: Mapping[str, Any]
    program: str | None
    arguments: tuple[Word, ...]
    unplaced: tuple[Unplaced, ...] = ()
