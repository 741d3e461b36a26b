"""Statements of a shell script: simple commands, lists of them, ``if``, and what is not followed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from megawrap.importing.lexer import Operator, Piece, Raw, Unreadable, tokens

_REDIRECTIONS = {"<", ">", ">>", ">&", "<&", "&>", "&>>", "<<", "<<-", "<<<"}
_ENDS = {"\n", ";", "&", ";;"}
_LOOPS = {"for": "done", "while": "done", "until": "done", "select": "done", "case": "esac"}
_CLOSERS = {"then", "elif", "else", "fi", "do", "done", "esac", "}"}


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


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop or ``case``: which of its statements run, and how often, is not followed."""

    kind: str
    words: tuple[Raw, ...]
    line: int
    last_line: int


Statement = Simple | Chain | If | Group | Function | Loop


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
        if text == "if":
            return self._if()
        if text in _LOOPS:
            return self._loop(text, _LOOPS[text])
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

    def _loop(self, kind: str, end: str) -> Loop:
        line, depth, words = self.line, 0, list[Raw]()
        while not self.is_done:
            token, text = self._stream[self._at], self.peek_text()
            depth += (text in _LOOPS) - (text in ("done", "esac"))
            words += [token] if isinstance(token, Raw) else []
            self._at += 1
            if depth == 0:
                return Loop(kind, tuple(words), line, token.line)
        raise Unreadable(f"{kind} without {end}", line)

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
            words.append(token if isinstance(token, Raw) else _word(token))
            self._at += 1
            if text == end:
                return tuple(words)
        raise Unreadable(f"{end} is missing", line)


def _word(operator: Operator) -> Raw:
    return Raw((Piece("text", operator.text, False, operator.line),), operator.line)
