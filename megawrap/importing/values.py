"""Values of shell variables and the expansion of words, as far as that needs no running."""

from __future__ import annotations

import ast
import dataclasses
import operator
import re
from collections.abc import Callable, Iterator, Sequence

from megawrap.importing.command import Word
from megawrap.importing.lexer import Piece, Raw, quoted_pieces, tokens


@dataclasses.dataclass(frozen=True)
class Fragment:
    """Text with the line where it stands; ``problem`` says why it is not known."""

    text: str
    line: int
    problem: str | None = None


Text = tuple[Fragment, ...]
"""A value, or one word: pieces of text that stand side by side."""

_PARAMETER = re.compile(r"(?P<name>[A-Za-z_]\w*|[@*#?$!0-9-])(?:\[(?P<index>[^\]]*)\])?(?P<rest>.*)", re.DOTALL)
_DEFAULT = re.compile(r"(:?[-=+])(.*)", re.DOTALL)


class Variables:
    """What is known of the variables of a script."""

    def __init__(self, given: dict[str, str]) -> None:
        self.scalars: dict[str, Text] = {name: (Fragment(value, 0),) for name, value in given.items()}
        self.arrays: dict[str, list[Text]] = {}
        self.exported: set[str] = set(given)
        self.unset: set[str] = set()
        self.maybe: dict[str, int] = {}
        """Names set only where the script is not followed → the line."""
        self.marks: list[Fragment] = []

    def assign(self, name: str, value: Text) -> None:
        """``name=value``"""
        self.scalars[name] = value
        self.arrays.pop(name, None)
        self.unset.discard(name)

    def remove(self, name: str) -> None:
        """``unset name``"""
        self.scalars.pop(name, None)
        self.arrays.pop(name, None)
        if name in self.exported:
            self.unset.add(name)
        self.exported.discard(name)

    def knows(self, name: str) -> bool:
        """Whether the script has set it."""
        return name in self.scalars or name in self.arrays

    def missing(self, name: str) -> str:
        """Why ``$name`` is not known."""
        if not name[0].isalpha() and name[0] != "_":
            return f"${name} is an argument of the script"
        if name in self.maybe:
            return f"${name} is set on line {self.maybe[name]}, which only running reaches or not"
        return f"${name} is not set at that point of the script"

    def words(self, raws: Sequence[Raw]) -> list[Text]:
        """The words that ``raws`` expand to."""
        return [word for raw in raws for word in self._expand(raw)]

    def text(self, pieces: Sequence[Piece]) -> Text:
        """``pieces`` as one value, unsplit: the right side of an assignment."""
        return tuple(fragment for piece in pieces for fragment in _joined(self._piece(piece)))

    def _expand(self, raw: Raw) -> Iterator[Text]:
        word: list[Fragment] | None = None
        for piece in raw.pieces:
            parts = self._piece(piece)
            splits = not piece.quoted and piece.kind in ("name", "mark")
            fields = [field for part in parts for field in _split(part)] if splits else parts
            for position, field in enumerate(fields):
                if position and word is not None:
                    yield tuple(word)
                    word = None
                word = [*(word or []), *field]
        if word is not None:
            yield tuple(word)

    def _piece(self, piece: Piece) -> list[Text]:
        """The fields of a piece: one, but for arrays."""
        if piece.kind == "name":
            return self._parameter(piece)
        if piece.kind == "mark":
            return [(self.marks[int(piece.text)],)]
        if piece.kind == "arithmetic":
            return [(self._arithmetic(piece),)]
        problem = None if piece.kind == "text" else f"{piece.text} has to be run"
        return [(Fragment(piece.text, piece.line, problem),)]

    def _parameter(self, piece: Piece) -> list[Text]:
        found = _PARAMETER.fullmatch(piece.text)
        if found is None:
            return [(self._unknown(piece, f"${{{piece.text}}} has to be run"),)]
        name, index, rest = found["name"], found["index"], found["rest"]
        if rest:
            return [self._with_default(piece, name, rest)]
        if index in ("@", "*") and name in self.arrays:
            return list(self.arrays[name])
        if name in self.arrays:
            position = int(index) if (index or "0").isdigit() and index else 0
            return self.arrays[name][position : position + 1] or [()]
        if name in self.scalars:
            return [self.scalars[name]]
        return [(self._unknown(piece, self.missing(name)),)]

    def _with_default(self, piece: Piece, name: str, rest: str) -> Text:
        found = _DEFAULT.fullmatch(rest)
        if found is None:
            return (self._unknown(piece, f"${{{piece.text}}} has to be run"),)
        kind, word = found[1], found[2]
        value = self.scalars.get(name, self.arrays.get(name, [None])[0])
        is_set = value is not None and (not kind.startswith(":") or any(one.text for one in value))
        if kind.endswith("+"):
            return self._default(word, piece) if is_set else ()
        if is_set:
            assert value is not None
            return value
        result = self._default(word, piece)
        if kind.endswith("="):
            self.assign(name, result)
        return result

    def _default(self, word: str, piece: Piece) -> Text:
        if piece.quoted:
            return self.text(quoted_pieces(word.replace('"', ""), piece.line))
        raws = [token for token in tokens(word, piece.line) if isinstance(token, Raw)]
        return self.text([part for raw in raws for part in raw.pieces])

    def _arithmetic(self, piece: Piece) -> Fragment:
        value = self.number(piece.text)
        if isinstance(value, int):
            return Fragment(str(value), piece.line)
        return Fragment(f"$(({piece.text}))", piece.line, value)

    def number(self, text: str) -> int | str:
        """The value of a shell's arithmetic, or why it is not known. Whole numbers, + - * / % and comparisons."""
        expanded = self.text(quoted_pieces(text.replace('"', ""), 0))
        problem = next((one.problem for one in expanded if one.problem), None)
        if problem:
            return problem
        try:
            source = "".join(one.text for one in expanded).replace("&&", " and ").replace("||", " or ")
            return self._evaluate(ast.parse(source.strip(), mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError):
            return f"$(({text})) has to be run"

    def _evaluate(self, node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and node.id in self.scalars:
            return int("".join(one.text for one in self.scalars[node.id]))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._evaluate(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return _ARITHMETIC[type(node.op)](self._evaluate(node.left), self._evaluate(node.right))
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
            compare = _COMPARISONS[type(node.ops[0])]
            return int(compare(self._evaluate(node.left), self._evaluate(node.comparators[0])))
        if isinstance(node, ast.BoolOp):
            values = [bool(self._evaluate(one)) for one in node.values]
            return int(all(values) if isinstance(node.op, ast.And) else any(values))
        raise ValueError("not arithmetic that is understood here")

    def _unknown(self, piece: Piece, problem: str) -> Fragment:
        shown = piece.text if piece.text.isidentifier() else f"{{{piece.text}}}"
        return Fragment(f"${shown}", piece.line, problem)


def _truncated(first: int, second: int) -> int:
    """Division as the shell does it: towards zero."""
    quotient = abs(first) // abs(second)
    return quotient if (first < 0) == (second < 0) else -quotient


_ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _truncated,
    ast.Mod: lambda first, second: first - second * _truncated(first, second),
}
_COMPARISONS: dict[type, Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def as_word(text: Text) -> Word:
    """A word for the reader of commands."""
    unknown = next((one for one in text if one.problem), None)
    telling = unknown or next((one for one in text if one.text), text[0] if text else None)
    line = telling.line if telling else 0
    return Word("".join(one.text for one in text), line or None, unknown.problem if unknown else None)


def _joined(fields: list[Text]) -> Iterator[Fragment]:
    for position, field in enumerate(fields):
        if position:
            yield Fragment(" ", field[0].line if field else 0)
        yield from field


def _split(text: Text) -> Iterator[Text]:
    """Words of an unquoted value: split at blanks."""
    word: list[Fragment] = []
    for fragment in text:
        if fragment.problem is not None:
            word.append(fragment)
            continue
        parts = re.split(r"\s+", fragment.text)
        for position, part in enumerate(parts):
            if position and word:
                yield tuple(word)
                word = []
            if part:
                word.append(dataclasses.replace(fragment, text=part))
    if word:
        yield tuple(word)
