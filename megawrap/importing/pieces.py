"""What the text of a shell script is cut into."""

from __future__ import annotations

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True)
class Piece:
    """Part of a word. ``name``: the inside of ``${...}``; ``array``: the words between parentheses; ``arithmetic``: the
    inside of ``$((...))``; ``opaque``: what only running tells; ``mark``: the number of a piece given from outside."""

    kind: Literal["text", "name", "array", "arithmetic", "opaque", "mark"]
    text: str
    quoted: bool
    line: int
    words: tuple[Raw, ...] = ()


@dataclasses.dataclass(frozen=True)
class Raw:
    """A word as it was written."""

    pieces: tuple[Piece, ...]
    line: int

    @property
    def plain(self) -> str | None:
        """Its text when it is one bare word, such as a keyword; otherwise ``None``."""
        alone = len(self.pieces) == 1 and self.pieces[0].kind == "text" and not self.pieces[0].quoted
        return self.pieces[0].text if alone else None


@dataclasses.dataclass(frozen=True)
class Operator:
    """``;``, ``&&``, a line end, a redirection, ... ``glued``: no blank before it, as in ``2>``."""

    text: str
    line: int
    glued: bool = False


class Unreadable(ValueError):
    """The script cannot be split into words: a quote or a parenthesis that does not end."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


def spelled(piece: Piece) -> str:
    """A ``name`` as a script has it: ``$NAME`` or ``${NAME:-x}``."""
    return f"${piece.text}" if piece.text.isidentifier() or len(piece.text) == 1 else f"${{{piece.text}}}"
