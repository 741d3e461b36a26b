"""Chains, branches and loops of a shell script, followed as far as reading allows."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from megawrap.importing.command import Unplaced
from megawrap.importing.statements import (
    Case,
    Chain,
    For,
    Function,
    Group,
    If,
    Simple,
    Statement,
    While,
    assigned,
    flags,
    shown,
    source,
)  # fmt: skip
from megawrap.importing.texts import as_word
from megawrap.importing.values import Variables

_MOST_TURNS = 1000  # of a loop


class Leave(Exception):
    """``exit``, ``return``, ``break`` or ``continue``, and the word behind it."""

    def __init__(self, name: str, line: int, status: str) -> None:
        super().__init__(name)
        self.name, self.line, self.status = name, line, status


class Control(abc.ABC):
    """Follows statements. What of them only running decides is left out and listed in ``unplaced``."""

    def __init__(self, variables: Variables) -> None:
        self.variables = variables
        self.unplaced: list[Unplaced] = []
        self._functions: dict[str, tuple[Statement, ...]] = {}
        self._is_condition = False

    @abc.abstractmethod
    def _simple(self, statement: Simple) -> bool | None:
        """Follow one command; how it ends."""

    def run(self, body: Iterable[Statement]) -> bool | None:
        """Follow statements; the result of the last: true, false, or ``None`` where only running tells.

        Raises:
            Leave: where the script leaves ``body``.
        """
        result: bool | None = True
        for statement in body:
            result = self._statement(statement)
        return result

    def _statement(self, statement: Statement) -> bool | None:
        if isinstance(statement, Simple):
            return self._simple(statement)
        if isinstance(statement, Chain):
            return self._chain(statement)
        if isinstance(statement, If):
            return self._if(statement)
        if isinstance(statement, Group):
            return self.run(statement.body)
        if isinstance(statement, Function):
            self._functions[statement.name] = statement.body
            return True
        if isinstance(statement, Case):
            return self._case(statement)
        return self._for(statement) if isinstance(statement, For) else self._while(statement)

    def _chain(self, chain: Chain) -> bool | None:
        result: bool | None = True
        for joint, link in chain.links:
            if joint and result is None:
                self._leave_out(shown([link]), "only running tells whether it runs", chain.line, [link])
            elif not joint or result == (joint == "&&"):
                result = self._statement(link)
        return result

    def _if(self, statement: If) -> bool | None:
        for condition, body in statement.branches:
            decided = True if condition is None else self._decide(condition)
            if decided is None:
                rest = [one for _, branch in statement.branches for one in branch]
                self._undecided(f"if {shown(condition or ())}", statement, rest)
                return True
            if decided:
                return self.run(body)
        return True

    def _case(self, statement: Case) -> bool | None:
        word = as_word(self.variables.text(statement.word.pieces))
        for patterns, body in statement.branches:
            for pattern in (as_word(self.variables.text(one.pieces)) for one in patterns):
                if word.problem or pattern.problem:
                    rest = [one for _, branch in statement.branches for one in branch]
                    self._undecided(f"case {source(statement.word)}", statement, rest)
                    return True
                if fnmatchcase(word.text, pattern.text):
                    return self.run(body)
        return True

    def _for(self, loop: For) -> bool | None:
        words = self.variables.words(loop.words) if loop.words is not None else None
        if words is None or any(one.problem for word in words for one in word):
            self._undecided(f"for {loop.name} in {' '.join(map(source, loop.words or ()))}", loop, loop.body)
            return True
        for word in words:
            self.variables.assign(loop.name, word)
            if not self._turn(loop.body):
                break
        return True

    def _while(self, loop: While) -> bool | None:
        for _ in range(_MOST_TURNS):
            decided = self._decide(loop.condition)
            if decided is None:
                break
            if decided != loop.wanted or not self._turn(loop.body):
                return True
        self._undecided(f"{'while' if loop.wanted else 'until'} {shown(loop.condition)}", loop, loop.body)
        return True

    def _turn(self, body: Sequence[Statement]) -> bool:
        """One turn of a loop; whether there may be another."""
        try:
            self.run(body)
        except Leave as leave:
            if leave.name not in ("break", "continue"):
                raise
            return leave.name == "continue"
        return True

    def _decide(self, condition: tuple[Statement, ...]) -> bool | None:
        outer, self._is_condition = self._is_condition, True
        decided = self.run(condition)
        self._is_condition = outer
        return decided

    def _undecided(self, what: str, statement: If | Case | For | While, body: Sequence[Statement]) -> None:
        lines = f"lines {statement.line}-{statement.last_line}"
        self._leave_out(what, f"only running decides it: {lines} are left out", statement.line, body)

    def _leave_out(self, what: str, reason: str, line: int, body: Sequence[Statement]) -> None:
        names, mentioned = assigned(body), flags(body)
        for name, at in names.items():
            self.variables.maybe.setdefault(name, at)
        needed = bool(names or mentioned)
        self.unplaced.append(Unplaced("script", " ".join([what, *mentioned]), reason, line, needed))
