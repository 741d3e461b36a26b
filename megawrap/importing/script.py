"""The training command in a shell script. The script is read, never run; what only running would tell is listed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from megawrap.errors import ConfigError, Finding
from megawrap.importing import grammar
from megawrap.importing.command import Command, Unplaced, Word, needs_running
from megawrap.importing.conditions import decide
from megawrap.importing.grammar import Chain, Function, Group, If, Loop, Simple, Statement, statements
from megawrap.importing.lexer import MARK, MARK_END, Piece, Raw, Unreadable
from megawrap.importing.started import ASSIGNMENT, is_launcher, read_command
from megawrap.importing.values import Fragment, Text, Variables, as_word

_DECLARATIONS = ("export", "declare", "typeset", "local", "readonly")
_READERS = ("read", "mapfile", "readarray", "getopts")
_SHELLS = ("bash", "sh")
_DEEPEST = 20  # of eval and functions inside one another


@dataclasses.dataclass(frozen=True)
class _Start:
    """A command that may be the training."""

    words: tuple[Word, ...]
    environment: Mapping[str, str | None]
    unplaced: tuple[Unplaced, ...]

    @property
    def flags(self) -> int:
        return sum(word.text.startswith("--") for word in self.words)

    @property
    def is_training(self) -> bool:
        return any("pretrain" in word.text and word.text.endswith(".py") for word in self.words)


def read_script(file: Path, given: Mapping[str, str]) -> Command:
    """The training command of ``file``. ``given`` are variables that the script would find set.

    Raises:
        ConfigError: when the file cannot be read, or starts no training.
    """
    try:
        text = file.read_text(encoding="utf-8")
        reader = _Reader(given)
        reader.run(statements(text))
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise ConfigError(Finding(id="MW033", keys=("--script",), message=f"{file} cannot be read: {reason}")) from None
    except Unreadable as problem:
        message = f"{file}:{problem.line}: {problem}"
        raise ConfigError(Finding(id="MW034", keys=("--script",), message=message)) from None
    return _command(file, reader)


def _command(file: Path, reader: _Reader) -> Command:
    if not reader.starts:
        message = f"{file} starts no training program that can be found without running it"
        nearest = ("megawrap import -- torchrun ... pretrain_gpt.py ...",)
        raise ConfigError(Finding(id="MW030", keys=("--script",), message=message, nearest=nearest))
    chosen = max(reader.starts, key=lambda one: (one.is_training, one.flags))
    others = [one for one in reader.starts if one is not chosen and one.is_training]
    command = read_command(chosen.words, str(file), chosen.environment)
    more = [Unplaced.of("script", one.words[:1], "the script starts another training here; one is imported") for one in others]
    return dataclasses.replace(
        command, unplaced=(*command.unplaced, *chosen.unplaced, *reader.unplaced, *more, *reader.assumed())
    )


class _Reader:
    def __init__(self, given: Mapping[str, str]) -> None:
        self.starts: list[_Start] = []
        self.unplaced: list[Unplaced] = []
        self._variables = Variables(dict(given))
        self._functions: dict[str, tuple[Statement, ...]] = {}
        self._assumed: dict[str, int] = {}
        self._depth = 0
        self._is_over = False
        self._is_condition = False

    def assumed(self) -> list[Unplaced]:
        """Variables that tests took as unset because the script never sets them."""
        return [
            Unplaced("script", f"${name}", f"set nowhere in the script, so taken as unset: --set {name}=VALUE", line, False)
            for name, line in self._assumed.items()
        ]

    def run(self, body: Iterable[Statement]) -> bool | None:
        """Follow statements; the result of the last."""
        result: bool | None = True
        for statement in body:
            if self._is_over:
                break
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
        return self._loop(statement)

    def _chain(self, chain: Chain) -> bool | None:
        result: bool | None = True
        for joint, link in chain.links:
            if joint and result is None:
                self._leave_out(_shown([link]), "only running tells whether it runs", chain.line, [link])
            elif not joint or result == (joint == "&&"):
                result = self._statement(link)
        return result

    def _if(self, statement: If) -> bool | None:
        for condition, body in statement.branches:
            decided = True if condition is None else self._decide(condition)
            if decided is None:
                rest = [one for _, branch in statement.branches for one in branch]
                shown = _shown(condition or ())
                lines = f"lines {statement.line}-{statement.last_line}"
                self._leave_out(f"if {shown}", f"only running decides it: {lines} are left out", statement.line, rest)
                return True
            if decided:
                return self.run(body)
        return True

    def _decide(self, condition: tuple[Statement, ...]) -> bool | None:
        outer, self._is_condition = self._is_condition, True
        decided = self.run(condition)
        self._is_condition = outer
        return decided

    def _loop(self, loop: Loop) -> bool:
        names = [found[1] for word in loop.words if (found := ASSIGNMENT.match(_source(word)))]
        for name in names:
            self._variables.maybe.setdefault(name, loop.line)
        reason = f"it is not followed: lines {loop.line}-{loop.last_line} are left out"
        shown = " ".join(_source(word) for word in loop.words[:4])
        self.unplaced.append(Unplaced("script", f"{shown} ...", reason, loop.line, needed=bool(names)))
        return True

    def _leave_out(self, shown: str, reason: str, line: int, body: Sequence[Statement]) -> None:
        names, flags = _assigned(body), _flags(body)
        for name, at in names.items():
            self._variables.maybe.setdefault(name, at)
        self.unplaced.append(Unplaced("script", " ".join([shown, *flags]), reason, line, needed=bool(names or flags)))

    def _simple(self, statement: Simple) -> bool | None:
        words = list(statement.words)
        if not words:
            return True
        if words[0].plain in ("[", "[[", "test"):
            return self._test(words)
        if words[0].plain == "((":
            value = self._variables.number(" ".join(_source(word) for word in words[1:-1]))
            return bool(value) if isinstance(value, int) else None
        if words[0].plain == "!":
            result = self._simple(Simple(tuple(words[1:]), statement.line))
            return None if result is None else not result
        before = []
        while words and _is_assignment(words[0]):
            before.append(words.pop(0))
        if not words:
            for word in before:
                self._assign(word)
            return True
        return self._called(before, words, statement.line)

    def _test(self, words: list[Raw]) -> bool | None:
        inside = words[1:] if words[0].plain == "test" else words[1:-1]
        found: list[Word] = []
        for raw in inside:
            # Between [[ ]] a value is one word whatever it holds; between [ ] an empty one is none, as in the shell.
            is_whole = words[0].plain == "[[" or any(piece.quoted for piece in raw.pieces)
            texts = [self._variables.text(raw.pieces)] if is_whole else self._variables.words([raw])
            tested = [self._tested(raw, text) for text in texts]
            found += [word for word in tested if is_whole or word.text]
        return decide(found)

    def _tested(self, raw: Raw, text: Text) -> Word:
        """The word as a test sees it: a variable that is set nowhere in the script counts as unset."""
        names = [piece.text for piece in raw.pieces if piece.kind == "name"]
        if any(one.problem for one in text) and names and all(self._is_free(name) for name in names):
            for name in names:
                self._assumed.setdefault(name, raw.line)
            text = tuple(one if one.problem is None else dataclasses.replace(one, text="", problem=None) for one in text)
        return as_word(text)

    def _is_free(self, name: str) -> bool:
        variables = self._variables
        return name.isidentifier() and not variables.knows(name) and name not in variables.maybe

    def _assign(self, word: Raw) -> str:
        """``NAME=value`` or ``NAME+=value``; the name."""
        head = word.pieces[0].text
        name, _, rest = head.partition("=")
        adds, name = name.endswith("+"), name.rstrip("+")
        if len(word.pieces) == 2 and word.pieces[1].kind == "array" and not rest:
            values = self._variables.words(word.pieces[1].words)
            known = self._variables.arrays.get(name, [])
            self._variables.scalars.pop(name, None)
            self._variables.arrays[name] = [*known, *values] if adds else values
            return name
        value = self._variables.text((dataclasses.replace(word.pieces[0], text=rest), *word.pieces[1:]))
        known_text = self._variables.scalars.get(name, ()) if adds else ()
        self._variables.assign(name, (*known_text, *value))
        return name

    def _called(self, before: list[Raw], words: list[Raw], line: int) -> bool | None:
        name = words[0].plain
        if name in _DECLARATIONS:
            return self._declare(name, words[1:])
        expanded = [as_word(text) for text in self._variables.words(words)]
        if not expanded:
            return True
        name = expanded[0].text
        if name == "unset":
            for word in expanded[1:]:
                self._variables.remove(word.text)
        elif name in _READERS:
            for word in expanded[1:]:
                self._variables.assign(word.text, (Fragment(f"${word.text}", line, "it is read while running"),))
        elif name in ("exit", "return"):
            self._is_over = name == "exit" or self._depth == 0
        elif name in ("source", "."):
            shown = " ".join(word.text for word in expanded)
            self.unplaced.append(Unplaced("script", shown, "the file that it reads is not followed", line))
        elif name in ("true", "false"):
            return name == "true"
        elif name in self._functions:
            return self._nested(self._functions[name])
        else:
            return self._program(before, words, expanded, line)
        return True

    def _declare(self, kind: str, words: list[Raw]) -> bool:
        options = "".join(word.plain or "" for word in words if (word.plain or "").startswith("-"))
        for word in words:
            if (word.plain or "").startswith("-"):
                continue
            name = self._assign(word) if _is_assignment(word) else word.plain
            if name and (kind == "export" or "x" in options):
                self._variables.exported.add(name)
        return True

    def _program(self, before: list[Raw], words: list[Raw], expanded: list[Word], line: int) -> bool | None:
        name = expanded[0].text.rpartition("/")[2]
        if name == "eval":
            return self._again(expanded[1:], line)
        shell = next((at for at, word in enumerate(expanded) if word.text.rpartition("/")[2] in _SHELLS), None)
        if shell is not None and [word.text for word in expanded[shell + 1 : shell + 2]] in (["-c"], ["-lc"]):
            # What starts the shell, such as srun, counts the machines of what the shell starts.
            return self._again([*expanded[:shell], *expanded[shell + 2 : shell + 3]], line)
        if is_launcher(expanded[0]) and any(word.text.endswith(".py") or word.text == "-m" for word in expanded):
            self._start(before, expanded)
        # How it ends is not known. It is taken to end well (mkdir DIR && torchrun ...) unless it is there to decide.
        return None if self._is_condition else True

    def _start(self, before: list[Raw], expanded: list[Word]) -> None:
        prefix = [as_word(self._variables.text(word.pieces)) for word in before]
        known, problems = self._environment()
        words = (*prefix, *expanded)
        self.starts.append(_Start(words, known, tuple(problems)))

    def _environment(self) -> tuple[dict[str, str | None], list[Unplaced]]:
        known: dict[str, str | None] = dict.fromkeys(sorted(self._variables.unset))
        problems = []
        for name in sorted(self._variables.exported):
            word = as_word(self._variables.scalars.get(name, ()))
            if name not in self._variables.scalars:
                problems.append(Unplaced("environment", f"export {name}", "its value comes from the shell", None, needed=False))
            elif word.problem is not None:
                text = f"{name}={word.text}"
                problems.append(Unplaced("environment", text, needs_running(word.problem), word.line))
            else:
                known[name] = word.text
        return known, problems

    def _again(self, words: Sequence[Word], line: int) -> bool | None:
        """Read ``words`` as a script once more, as eval does; what is not known stays one piece."""
        parts = []
        for word in words:
            if word.problem is None:
                parts.append(word.text)
            else:
                self._variables.marks.append(Fragment(word.text, word.line or line, word.problem))
                parts.append(f"{MARK}{len(self._variables.marks) - 1}{MARK_END}")
        return self._nested(statements(" ".join(parts), line))

    def _nested(self, body: tuple[Statement, ...]) -> bool | None:
        if self._depth >= _DEEPEST:
            return None
        self._depth += 1
        result = self.run(body)
        self._depth -= 1
        return result


def _is_assignment(word: Raw) -> bool:
    first = word.pieces[0] if word.pieces else None
    is_text = first is not None and first.kind == "text" and not first.quoted
    return is_text and ASSIGNMENT.match(first.text.replace("+=", "=", 1)) is not None  # type: ignore[union-attr]


def _source(word: Raw) -> str:
    """A word about as it was written."""
    return "".join(_piece_source(piece) for piece in word.pieces)


def _piece_source(piece: Piece) -> str:
    if piece.kind == "name":
        return f"${piece.text}" if piece.text.isidentifier() else f"${{{piece.text}}}"
    if piece.kind == "array":
        return f"({' '.join(_source(word) for word in piece.words)})"
    return f"$(({piece.text}))" if piece.kind == "arithmetic" else piece.text


def _simples(body: Iterable[Statement]) -> Iterable[Simple]:
    for one in body:
        if isinstance(one, Simple):
            yield one
        elif isinstance(one, Chain):
            yield from _simples(link for _, link in one.links)
        elif isinstance(one, If):
            yield from _simples(statement for _, branch in one.branches for statement in branch)
        elif isinstance(one, grammar.Group | Function):
            yield from _simples(one.body)


def _assigned(body: Iterable[Statement]) -> dict[str, int]:
    """Names that ``body`` sets → the line."""
    words = [word for one in _simples(body) for word in one.words if _is_assignment(word)]
    return {_source(word).partition("=")[0].rstrip("+"): word.line for word in words}


def _flags(body: Iterable[Statement]) -> list[str]:
    """Flags that ``body`` mentions, so that the user sees what was left out."""
    texts = [_source(word) for one in _simples(body) for word in one.words]
    return [part for text in texts for part in text.split() if part.startswith("--")]


def _shown(body: Iterable[Statement]) -> str:
    return " ".join(_source(word) for one in _simples(body) for word in one.words)
