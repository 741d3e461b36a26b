"""From the text of a shell script to its statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from megawrap.importing.lexer import tokens
from megawrap.importing.pieces import Operator, Piece, Raw, Unreadable
from megawrap.importing.statements import Case, Chain, For, Function, Group, If, Simple, Statement, While

_REDIRECTIONS = {"<", ">", ">>", ">&", "<&", "&>", "&>>", "<<", "<<-", "<<<"}
_ENDS = {"\n", ";", "&", ";;"}
_CLOSERS = {"then", "elif", "else", "fi", "do", "done", "esac", "}"}


def statements(text: str, line: int = 1) -> tuple[Statement, ...]:
    """Read a script.

    Raises:
        Unreadable: where something that was opened does not end.
    """
    parser = _Parser(tokens(text, line))
    found = parser.block(set())
    if not parser.is_done:
        raise Unreadable(f"{parser.peek_text()} stands where no such word can", parser.line)
    return found


class _Parser:
    def __init__(self, stream: Sequence[Raw | Operator]) -> None:
        self._stream = stream
        self._at = 0

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._stream)

    @property
    def line(self) -> int:
        return self._stream[min(self._at, len(self._stream) - 1)].line if self._stream else 1

    def peek_text(self) -> str | None:
        """The text of the next token when it is an operator or a bare word."""
        if self.is_done:
            return None
        token = self._stream[self._at]
        return token.text if isinstance(token, Operator) else token.plain

    def block(self, ends: set[str]) -> tuple[Statement, ...]:
        """Statements up to one of ``ends``, which is left where it is."""
        found: list[Statement] = []
        while not self.is_done:
            text = self.peek_text()
            if text in ends or (text in _CLOSERS and ends):
                break
            if text in _ENDS:
                self._at += 1
            elif text in _CLOSERS or text in (")", "))"):
                break
            else:
                before = self._at
                found.append(self._chain())
                if self._at == before:
                    raise Unreadable(f"{text!r} stands where no command can begin", self.line)
        return tuple(found)

    def _chain(self) -> Statement:
        line = self.line
        links = [("", self._pipeline())]
        while self.peek_text() in ("&&", "||"):
            operator = self.peek_text() or ""
            self._at += 1
            self._skip_line_ends()
            links.append((operator, self._pipeline()))
        return links[0][1] if len(links) == 1 else Chain(tuple(links), line)

    def _pipeline(self) -> Statement:
        """Of a pipeline the first command: the others read what it prints."""
        first = self._statement()
        while self.peek_text() in ("|", "|&"):
            self._at += 1
            self._skip_line_ends()
            self._statement()
        return first

    def _statement(self) -> Statement:
        line, text = self.line, self.peek_text()
        if text in _KEYWORDS:
            return _KEYWORDS[text](self)
        if text in ("{", "("):
            return self._group("}" if text == "{" else ")")
        if text == "function" or self._defines():
            return self._function()
        return Simple(self._simple(), line)

    def _group(self, end: str) -> Group:
        line = self.line
        self._at += 1
        body = self.block({end})
        self._expect(end)
        self._simple()  # redirections of the whole group
        return Group(body, line)

    def _defines(self) -> bool:
        if self.is_done:
            return False
        following = [one.text if isinstance(one, Operator) else "" for one in self._stream[self._at + 1 : self._at + 3]]
        return isinstance(self._stream[self._at], Raw) and following == ["(", ")"]

    def _function(self) -> Function:
        line = self.line
        self._at += self.peek_text() == "function"
        name = self.peek_text() or ""
        self._at += 1
        while self.peek_text() in ("(", ")", "\n"):
            self._at += 1
        return Function(name, self._group("}").body, line)

    def _if(self) -> If:
        line, branches = self.line, []
        while self.peek_text() in ("if", "elif"):
            self._at += 1
            condition = self.block({"then"})
            self._expect("then")
            branches.append((condition, self.block({"elif", "else", "fi"})))
        found: list[tuple[tuple[Statement, ...] | None, tuple[Statement, ...]]] = [*branches]
        if self.peek_text() == "else":
            self._at += 1
            found.append((None, self.block({"fi"})))
        last_line = self.line
        self._expect("fi")
        return If(tuple(found), line, last_line)

    def _for(self) -> For:
        """``for NAME [in WORDS]``, ``for ((...))`` and ``select``, whose turns only running tells."""
        line, kind = self.line, self.peek_text()
        self._at += 1
        if self.peek_text() == "((":
            self._test("))")
            return For("", None, *self._do(line))
        name = self.peek_text() or ""
        self._at += 1
        words = self._simple()
        if not words:
            # Without words it goes over the script's arguments.
            words = (Raw((Piece("name", "@", True, line),), line),)
        elif words[0].plain == "in":
            words = words[1:]
        return For(name, None if kind == "select" else words, *self._do(line))

    def _while(self) -> While:
        line, wanted = self.line, self.peek_text() == "while"
        self._at += 1
        return While(wanted, self.block({"do"}), *self._do(line))

    def _do(self, line: int) -> tuple[tuple[Statement, ...], int, int]:
        """The body of a loop, its first and its last line."""
        while self.peek_text() in ("\n", ";"):
            self._at += 1
        self._expect("do")
        body, last_line = self.block({"done"}), self.line
        self._expect("done")
        self._simple()  # redirections of the whole loop
        return body, line, last_line

    def _case(self) -> Case:
        line = self.line
        self._at += 1
        word, branches = self._word("a word behind case"), []
        self._skip_line_ends()
        self._expect("in")
        self._skip_line_ends()
        while not self.is_done and self.peek_text() != "esac":
            branches.append((self._patterns(), self.block({";;", "esac"})))
            while self.peek_text() in (";;", ";", "&", "\n"):
                self._at += 1
        last_line = self.line
        self._expect("esac")
        return Case(word, tuple(branches), line, last_line)

    def _patterns(self) -> tuple[Raw, ...]:
        self._at += self.peek_text() == "("
        found = [self._word("a pattern")]
        while self.peek_text() == "|":
            self._at += 1
            found.append(self._word("a pattern"))
        self._expect(")")
        return tuple(found)

    def _word(self, what: str) -> Raw:
        token = None if self.is_done else self._stream[self._at]
        if not isinstance(token, Raw):
            raise Unreadable(f"{what} is missing before {self.peek_text() or 'the end'!r}", self.line)
        self._at += 1
        return token

    def _expect(self, word: str) -> None:
        if self.peek_text() != word:
            raise Unreadable(f"{word} is missing before {self.peek_text() or 'the end'!r}", self.line)
        self._at += 1

    def _skip_line_ends(self) -> None:
        while self.peek_text() == "\n":
            self._at += 1

    def _simple(self) -> tuple[Raw, ...]:
        if self.peek_text() in ("[[", "(("):
            return self._test({"[[": "]]", "((": "))"}[self.peek_text() or ""])
        words: list[Raw] = []
        while not self.is_done:
            token = self._stream[self._at]
            if isinstance(token, Raw):
                words.append(token)
            elif token.text in _REDIRECTIONS:
                self._redirection(words)
            else:
                break
            self._at += 1
        return tuple(words)

    def _redirection(self, words: list[Raw]) -> None:
        """Drop it, the number before it and the word behind it."""
        operator = self._stream[self._at]
        if words and (words[-1].plain or "").isdigit() and isinstance(operator, Operator) and operator.glued:
            words.pop()
        if self._at + 1 < len(self._stream) and isinstance(self._stream[self._at + 1], Raw):
            self._at += 1

    def _test(self, end: str) -> tuple[Raw, ...]:
        line, words = self.line, list[Raw]()
        while not self.is_done:
            token, text = self._stream[self._at], self.peek_text()
            words.append(token if isinstance(token, Raw) else _as_word(token))
            self._at += 1
            if text == end:
                return tuple(words)
        raise Unreadable(f"{end} is missing", line)


_KEYWORDS: dict[str, Callable[[_Parser], Statement]] = {
    "if": _Parser._if,
    "for": _Parser._for,
    "select": _Parser._for,
    "while": _Parser._while,
    "until": _Parser._while,
    "case": _Parser._case,
}


def _as_word(operator: Operator) -> Raw:
    return Raw((Piece("text", operator.text, False, operator.line),), operator.line)
