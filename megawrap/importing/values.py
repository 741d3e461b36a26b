"""Values of shell variables and the expansion of words, as far as that needs no running."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from megawrap.importing.arithmetic import evaluate
from megawrap.importing.cutting import cut
from megawrap.importing.lexer import quoted_pieces, tokens
from megawrap.importing.pieces import Piece, Raw, spelled
from megawrap.importing.substitution import echo_cut, echoed
from megawrap.importing.texts import Fragment, Text, joined, plain, split

_PARAMETER = re.compile(r"(?P<name>[A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[(?P<index>[^\]]*)\])?(?P<rest>.*)", re.DOTALL)
_LENGTH = re.compile(r"#([A-Za-z_]\w*|\d+)(\[[@*]\])?")
_DEFAULT = re.compile(r"(:?[-=+?])(.*)", re.DOTALL)
_CUT = re.compile(r"(##?|%%?|//?|,,?|\^\^?)(.*)", re.DOTALL)
_SLICE = re.compile(r":([^:]+)(?::([^:]+))?")


class Variables:
    """What is known of the variables of a script. ``arguments`` are its own, ``$1`` and on."""

    def __init__(self, given: dict[str, str], arguments: Sequence[str] = ()) -> None:
        self.scalars: dict[str, Text] = {name: (Fragment(value, 0),) for name, value in given.items()}
        self.arrays: dict[str, list[Text]] = {}
        self.arguments: list[Text] = [(Fragment(value, 0),) for value in arguments]
        self._has_arguments = bool(arguments)
        self.exported: set[str] = set(given)
        self.unset: set[str] = set()
        self.maybe: dict[str, int] = {}
        """Names set only where the script is not followed → the line."""
        self.assumed: dict[str, int] = {}
        """What was taken as unset because nothing sets it → the line."""
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

    def is_free(self, name: str) -> bool:
        """Whether neither the script nor its user sets it, anywhere up to here."""
        is_name = name.isidentifier() or name.isdigit()
        return is_name and self._value(name, None) is None and name not in self.maybe

    def words(self, raws: Sequence[Raw]) -> list[Text]:
        """The words that ``raws`` expand to."""
        return [word for raw in raws for word in self._expand(raw)]

    def text(self, pieces: Sequence[Piece]) -> Text:
        """``pieces`` as one value, unsplit: the right side of an assignment."""
        return tuple(fragment for piece in pieces for fragment in joined(self._piece(piece)))

    def number(self, text: str) -> int | str:
        """The value of a shell's arithmetic, or why it is not known."""
        expanded = self.text(quoted_pieces(text.replace('"', ""), 0))
        problem = next((one.problem for one in expanded if one.problem), None)
        if problem:
            return problem
        try:
            return evaluate(plain(expanded), self._integer)
        except ValueError:
            return f"$(({text})) has to be run"

    def _integer(self, name: str) -> int:
        value = self._value(name, None)
        if value is None or any(one.problem for one in value):
            raise ValueError(f"{name} is not known")
        return int(plain(value))

    def _expand(self, raw: Raw) -> Iterator[Text]:
        word: list[Fragment] | None = None
        for piece in raw.pieces:
            parts = self._piece(piece)
            splits = not piece.quoted and piece.kind in ("name", "mark", "opaque")
            fields = [field for part in parts for field in split(part)] if splits else parts
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
            value = self.number(piece.text)
            known = isinstance(value, int)
            return [
                (Fragment(str(value) if known else f"$(({piece.text}))", piece.line, None if known else str(value)),)
            ]
        if piece.kind == "opaque":
            return [(self._run(piece),)]
        problem = None if piece.kind == "text" else f"{piece.text} has to be run"
        return [(Fragment(piece.text, piece.line, problem),)]

    def _run(self, piece: Piece) -> Fragment:
        """A command substitution, where it is no more than cutting a known value."""
        value = self._value(echoed(piece.text) or "", None)
        is_known = value is not None and not any(one.problem for one in value)
        cut_out = echo_cut(piece.text, plain(value)) if value is not None and is_known else None
        problem = f"{piece.text} has to be run" if cut_out is None else None
        return Fragment(piece.text if cut_out is None else cut_out, piece.line, problem)

    def _parameter(self, piece: Piece) -> list[Text]:
        length = _LENGTH.fullmatch(piece.text)
        if length is not None:
            return [(self._length(piece, length[1], bool(length[2])),)]
        found = _PARAMETER.fullmatch(piece.text)
        if found is None:
            return [(_to_run(piece),)]
        name, index, rest = found["name"], found["index"], found["rest"]
        if name == "#" and not rest:
            self._without_arguments(name, piece.line)
            return [(Fragment(str(len(self.arguments)), piece.line),)]
        if name in ("@", "*") or index in ("@", "*"):
            fields = self._fields(name, piece.line)
            if fields is not None and not rest:
                is_one = piece.quoted and "*" in (name, index)
                return [tuple(joined(fields))] if is_one else fields
        value = self._value(name, index)
        if rest:
            return [self._changed(piece, name, value, rest)]
        return [(Fragment(spelled(piece), piece.line, self._missing(name)),) if value is None else value]

    def _fields(self, name: str, line: int) -> list[Text] | None:
        """The elements of an array, or the script's arguments."""
        if name in ("@", "*"):
            self._without_arguments("@", line)
            return self.arguments
        return self.arrays.get(name, [self.scalars[name]] if name in self.scalars else None)

    def _without_arguments(self, name: str, line: int) -> None:
        if not (self._has_arguments or self.arguments) and line:
            self.assumed.setdefault(name, line)

    def _value(self, name: str, index: str | None) -> Text | None:
        if name.isdigit() and 0 < int(name) <= len(self.arguments):
            return self.arguments[int(name) - 1]
        if name in self.arrays:
            at = self.number(index) if index else 0
            elements = self.arrays[name]
            return None if isinstance(at, str) else elements[at] if -len(elements) <= at < len(elements) else ()
        return self.scalars.get(name)

    def _length(self, piece: Piece, name: str, of_array: bool) -> Fragment:
        fields, value = self._fields(name, 0), self._value(name, None)
        if of_array and fields is not None:
            return Fragment(str(len(fields)), piece.line)
        if of_array or value is None or any(one.problem for one in value):
            return _to_run(piece)
        return Fragment(str(len(plain(value))), piece.line)

    def _changed(self, piece: Piece, name: str, value: Text | None, rest: str) -> Text:
        found = _DEFAULT.fullmatch(rest)
        if found is not None:
            return self._with_default(piece, name, value, found[1], found[2])
        if value is None:
            return (Fragment(spelled(piece), piece.line, self._missing(name)),)
        problem = next((one.problem for one in value if one.problem), None)
        changed = self._part(plain(value), rest, piece) if problem is None else None
        return (Fragment(changed, piece.line) if changed is not None else _to_run(piece, problem),)

    def _part(self, text: str, rest: str, piece: Piece) -> str | None:
        """Part of a value: ``${X:1:2}``, ``${X%%.*}``; ``None`` where only running tells."""
        sliced = _SLICE.fullmatch(rest)
        if sliced is not None:
            start, count = self.number(sliced[1]), self.number(sliced[2] or str(len(text)))
            if isinstance(start, str) or isinstance(count, str):
                return None
            start = max(start + len(text), 0) if start < 0 else start
            return text[start : start + count if count >= 0 else count]
        found = _CUT.fullmatch(rest)
        word = self._word(found[2], piece) if found is not None else ()
        if found is None or any(one.problem for one in word):
            return None
        return cut(text, found[1], plain(word))

    def _with_default(self, piece: Piece, name: str, value: Text | None, kind: str, word: str) -> Text:
        is_set = value is not None and (not kind.startswith(":") or any(one.text for one in value))
        if kind.endswith("+"):
            return self._word(word, piece) if is_set else ()
        if is_set:
            assert value is not None
            return value
        if kind.endswith("?"):
            return (Fragment(spelled(piece), piece.line, self._missing(name)),)
        result = self._word(word, piece)
        if kind.endswith("="):
            self.assign(name, result)
        return result

    def _word(self, word: str, piece: Piece) -> Text:
        """What stands inside ``${...}`` behind the sign, expanded."""
        if piece.quoted:
            return self.text(quoted_pieces(word.replace('"', ""), piece.line))
        raws = [token for token in tokens(word, piece.line) if isinstance(token, Raw)]
        return self.text([part for raw in raws for part in raw.pieces])

    def _missing(self, name: str) -> str:
        if name.isdigit() and name != "0":
            return f"${name} is an argument of the script: give its arguments after --"
        if name in self.maybe:
            return f"${name} is set on line {self.maybe[name]}, which only running reaches or not"
        if name.isidentifier():
            return f"${name} is not set at that point of the script: --set {name}=VALUE"
        return f"${name} has to be run"


def _to_run(piece: Piece, problem: str | None = None) -> Fragment:
    return Fragment(spelled(piece), piece.line, problem or f"{spelled(piece)} has to be run")
