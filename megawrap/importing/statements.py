"""What a shell script is made of, and what a piece of one mentions."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from megawrap.importing.pieces import Piece, Raw, spelled

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Simple:
    """A command and its words; ``[[ ... ]]`` and ``(( ... ))`` with all their operators as words."""

    words: tuple[Raw, ...]
    line: int


@dataclasses.dataclass(frozen=True)
class Chain:
    """Statements joined by ``&&`` and ``||``: each with the operator before it."""

    links: tuple[tuple[str, Statement], ...]
    line: int


@dataclasses.dataclass(frozen=True)
class If:
    """``if``: the branches with their conditions; ``else`` has none."""

    branches: tuple[tuple[tuple[Statement, ...] | None, tuple[Statement, ...]], ...]
    line: int
    last_line: int


@dataclasses.dataclass(frozen=True)
class Case:
    """``case``: the word, and for each branch its patterns and its statements."""

    word: Raw
    branches: tuple[tuple[tuple[Raw, ...], tuple[Statement, ...]], ...]
    line: int
    last_line: int


@dataclasses.dataclass(frozen=True)
class For:
    """``for NAME in WORDS``. ``words`` is ``None`` where the loop counts: ``for ((...))``, ``select``."""

    name: str
    words: tuple[Raw, ...] | None
    body: tuple[Statement, ...]
    line: int
    last_line: int


@dataclasses.dataclass(frozen=True)
class While:
    """``while``, or ``until``: the loop goes on as long as the condition is ``wanted``."""

    wanted: bool
    condition: tuple[Statement, ...]
    body: tuple[Statement, ...]
    line: int
    last_line: int


@dataclasses.dataclass(frozen=True)
class Group:
    """``{ ... }`` or ``( ... )``."""

    body: tuple[Statement, ...]
    line: int


@dataclasses.dataclass(frozen=True)
class Function:
    """The definition of a function."""

    name: str
    body: tuple[Statement, ...]
    line: int


Statement = Simple | Chain | If | Case | For | While | Group | Function


def source(word: Raw) -> str:
    """A word about as it was written."""
    return "".join(_piece_source(piece) for piece in word.pieces)


def is_assignment(word: Raw) -> bool:
    """Whether ``word`` is ``NAME=...`` or ``NAME+=...``, with the name and the sign unquoted."""
    first = word.pieces[0] if word.pieces else None
    is_bare = first is not None and first.kind == "text" and not first.quoted
    return is_bare and ASSIGNMENT.match(source(word)) is not None


def assigned(body: Iterable[Statement]) -> dict[str, int]:
    """Names that ``body`` sets → the line."""
    words = [word for one in _simples(body) for word in one.words if is_assignment(word)]
    return {source(word).partition("=")[0].rstrip("+"): word.line for word in words}


def flags(body: Iterable[Statement]) -> list[str]:
    """Flags that ``body`` mentions, so that the user sees what was left out."""
    texts = [source(word) for one in _simples(body) for word in one.words]
    return [part for text in texts for part in text.split() if part.startswith("--")]


def shown(body: Iterable[Statement]) -> str:
    """The words of ``body`` in a line."""
    return " ".join(source(word) for one in _simples(body) for word in one.words)


def _piece_source(piece: Piece) -> str:
    if piece.kind == "name":
        return spelled(piece)
    if piece.kind == "array":
        return f"({' '.join(source(word) for word in piece.words)})"
    return f"$(({piece.text}))" if piece.kind == "arithmetic" else piece.text


def _simples(body: Iterable[Statement]) -> Iterator[Simple]:
    for one in body:
        if isinstance(one, Simple):
            yield one
        else:
            yield from _simples(_inside(one))


def _inside(one: Statement) -> list[Statement]:
    if isinstance(one, Chain):
        return [link for _, link in one.links]
    if isinstance(one, If | Case):
        return [statement for _, branch in one.branches for statement in branch]
    assert not isinstance(one, Simple)
    return list(one.body)
