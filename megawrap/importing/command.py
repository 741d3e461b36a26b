"""A training command in words, and what of it could not be placed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from megawrap.errors import Finding

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
    """Words that the configuration does not hold. ``needed`` is false where nothing is lost by that; ``nearest`` are
    words that may have been meant."""

    kind: Kind
    words: str
    reason: str
    line: int | None = None
    needed: bool = True
    nearest: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, kind: Kind, words: Sequence[Word], reason: str, *, needed: bool = True, nearest: tuple[str, ...] = ()
    ) -> Unplaced:
        """From the words themselves."""
        unknown = [word for word in words if word.problem is not None]
        line = next((word.line for word in [*unknown, *words] if word.line is not None), None)
        return cls(kind, " ".join(word.text for word in words), reason, line, needed, nearest)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, documented in docs/json.md."""
        return dataclasses.asdict(self)

    def finding(self) -> Finding:
        """The same as a warning."""
        where = f"line {self.line}: " if self.line is not None else ""
        message = f"not placed: {where}{self.words}: {self.reason}"
        flag = (self.words.split()[0],) if self.kind == "argument" and self.words.startswith("--") else ()
        return Finding(id="MW038", severity="warning", keys=flag, message=message, nearest=self.nearest)


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
