"""Words and operators of a shell script, with their quotes understood and nothing expanded yet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from megawrap.importing.pieces import Operator, Piece, Raw, Unreadable

OPERATORS = ("&&", "||", "|&", ";;", "((", "))", "&>>", "&>", ">&", ">>", "<<<", "<<-", "<<", "<&", "|", "&", ";", "(",
             ")", "<", ">", "\n")  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]\w*|[@*#?$!0-9-]")
_PLAIN = re.compile(r"[^\s\\'\"$`;&|<>()\x01]+")
# What eval puts where a word is not known: the number of the piece between these two.
MARK, MARK_END = "\x01", "\x02"


def without_marks(text: str) -> str:
    """``text`` without the control characters that are marks here, and nothing in a script."""
    return text.replace(MARK, "").replace(MARK_END, "")


def tokens(text: str, line: int = 1) -> list[Raw | Operator]:
    """Split a script.

    Raises:
        Unreadable: where something that was opened does not end.
    """
    return list(_Lexer(text, line).tokens())


def quoted_pieces(text: str, line: int) -> tuple[Piece, ...]:
    """Pieces of ``text`` as it would be read between double quotes."""
    return tuple(_Lexer(f'{text}"', line).double_quoted())


class _Lexer:
    def __init__(self, text: str, line: int) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.line = line
        self.heredocs: list[str] = []

    def tokens(self) -> Iterator[Raw | Operator]:
        while self._skip_blanks():
            operator = next((one for one in OPERATORS if self.text.startswith(one, self.at)), None)
            if operator is None:
                yield self._word()
            else:
                glued = self.at > 0 and not self.text[self.at - 1].isspace()
                yield Operator(operator, self.line, glued)
                self._advance(len(operator))
                self._after(operator)

    def _after(self, operator: str) -> None:
        if operator in ("<<", "<<-"):
            self._skip_blanks()
            self.heredocs.append("".join(piece.text for piece in self._word().pieces))
        elif operator == "\n":
            while self.heredocs:
                self._skip_heredoc(self.heredocs.pop(0))

    def _skip_heredoc(self, end: str) -> None:
        while self.at < len(self.text):
            stop = self.text.find("\n", self.at)
            stop = len(self.text) if stop < 0 else stop
            is_end = self.text[self.at : stop].strip() == end
            self._advance(stop + 1 - self.at)
            if is_end:
                return

    def _skip_blanks(self) -> bool:
        """Go to the next token; whether there is one."""
        while self.at < len(self.text):
            if self.text.startswith("\\\n", self.at):
                self._advance(2)
            elif self.text[self.at] in " \t":
                self._advance(1)
            elif self.text[self.at] == "#":
                stop = self.text.find("\n", self.at)
                self._advance((stop if stop >= 0 else len(self.text)) - self.at)
            else:
                return True
        return False

    def _advance(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count

    def _word(self) -> Raw:
        line, pieces = self.line, list[Piece]()
        while self.at < len(self.text):
            here = self.text[self.at]
            if self.text.startswith("\\\n", self.at):
                self._advance(2)
            elif here == "(" and pieces and pieces[-1].text.endswith("=") and not pieces[-1].quoted:
                pieces.append(self._array())
            elif here in " \t\n;&|<>()":
                break
            else:
                pieces += self._piece(here)
        return Raw(tuple(pieces), line)

    def _piece(self, here: str) -> list[Piece]:
        if here == "'":
            return [Piece("text", self._until("'", "a single quote"), True, self.line)]
        if here == '"':
            self._advance(1)
            return self.double_quoted()
        if here == "\\":
            self._advance(2)
            return [Piece("text", self.text[self.at - 1 : self.at], True, self.line)]
        if here in "$`":
            return [self._dollar(quoted=False)]
        if here == MARK:
            return [self._mark(quoted=False)]
        found = _PLAIN.match(self.text, self.at)
        assert found is not None
        self._advance(len(found[0]))
        return [Piece("text", found[0], False, self.line)]

    def _mark(self, *, quoted: bool) -> Piece:
        stop = self.text.index(MARK_END, self.at)
        number = self.text[self.at + 1 : stop]
        self._advance(stop + 1 - self.at)
        return Piece("mark", number, quoted, self.line)

    def _until(self, end: str, what: str) -> str:
        line = self.line
        stop = self.text.find(end, self.at + 1)
        if stop < 0:
            raise Unreadable(f"{what} does not end", line)
        inside = self.text[self.at + 1 : stop]
        self._advance(stop + 1 - self.at)
        return inside

    def double_quoted(self) -> list[Piece]:
        """Pieces up to the closing double quote; the opening one is behind us."""
        start, pieces, text = self.line, list[Piece](), ""
        while self.at < len(self.text):
            here = self.text[self.at]
            if here == '"':
                self._advance(1)
                # Also when empty: "" is a word.
                return [*pieces, Piece("text", text, True, self.line)]
            if here in "$`" or here == MARK:
                pieces.append(Piece("text", text, True, self.line))
                pieces.append(self._mark(quoted=True) if here == MARK else self._dollar(quoted=True))
                text = ""
            elif here == "\\" and self.text[self.at + 1 : self.at + 2] in ("\n", '"', "\\", "$", "`"):
                text += self.text[self.at + 1].replace("\n", "")
                self._advance(2)
            elif here == "\n":
                # A piece a line, so that each word of a long string knows its own.
                pieces.append(Piece("text", text + here, True, self.line))
                text = ""
                self._advance(1)
            else:
                text += here
                self._advance(1)
        raise Unreadable("a double quote does not end", start)

    def _dollar(self, *, quoted: bool) -> Piece:
        line = self.line
        if self.text[self.at] == "`":
            return Piece("opaque", f"`{self._until('`', 'a backquote')}`", quoted, line)
        if self.text.startswith("$((", self.at):
            inside = self._balanced("(", ")", 1)
            if inside.startswith("(") and inside.endswith(")"):
                return Piece("arithmetic", inside[1:-1], quoted, line)
            return Piece("opaque", f"$({inside})", quoted, line)
        if self.text.startswith("$(", self.at):
            return Piece("opaque", f"$({self._balanced('(', ')', 1)})", quoted, line)
        if self.text.startswith("${", self.at):
            return Piece("name", self._balanced("{", "}", 1), quoted, line)
        found = _NAME.match(self.text, self.at + 1)
        self._advance(1 + (len(found[0]) if found else 0))
        return Piece("name", found[0], quoted, line) if found else Piece("text", "$", quoted, line)

    def _balanced(self, opening: str, closing: str, offset: int) -> str:
        """The inside of a pair that begins ``offset`` characters on. Quotes inside are jumped over."""
        line, start, depth, at = self.line, self.at + offset + 1, 0, self.at + offset
        while at < len(self.text):
            here = self.text[at]
            if here == "\\":
                at += 1
            elif here in "'\"" and opening == "(":
                at = self._closing_quote(here, at)
            depth += (here == opening) - (here == closing)
            at += 1
            if depth == 0:
                self._advance(at - self.at)
                return self.text[start : at - 1]
        raise Unreadable(f"{opening} does not end", line)

    def _closing_quote(self, quote: str, at: int) -> int:
        found = re.compile(r"'" if quote == "'" else r'(?<!\\)"').search(self.text, at + 1)
        return found.start() if found else len(self.text)

    def _array(self) -> Piece:
        line, words = self.line, list[Raw]()
        self._advance(1)
        while self._skip_blanks():
            here = self.text[self.at]
            if here == ")":
                self._advance(1)
                return Piece("array", "", False, line, tuple(words))
            if here in "\n;&|<>(":
                self._advance(1)
            else:
                words.append(self._word())
        raise Unreadable("( does not end", line)
