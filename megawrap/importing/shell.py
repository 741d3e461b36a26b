"""The commands of a shell script, read and never run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from megawrap.importing.command import Unplaced, Word, needs_running
from megawrap.importing.conditions import decide
from megawrap.importing.control import Control, Leave
from megawrap.importing.grammar import statements
from megawrap.importing.lexer import MARK, MARK_END, without_marks
from megawrap.importing.pieces import Raw
from megawrap.importing.started import may_start
from megawrap.importing.statements import ASSIGNMENT, Simple, Statement, is_assignment, source
from megawrap.importing.texts import Fragment, Text, as_word
from megawrap.importing.values import Variables

_DECLARATIONS = ("export", "declare", "typeset", "local", "readonly")
_READERS = ("read", "mapfile", "readarray", "getopts")
_LEAVES = ("exit", "return", "break", "continue")
_SHELLS = ("bash", "sh")
_DEEPEST = 20  # of eval and functions inside one another


@dataclasses.dataclass(frozen=True)
class Start:
    """A command that may be the training, with what the script exported before it."""

    words: tuple[Word, ...]
    environment: Mapping[str, str | None]
    unplaced: tuple[Unplaced, ...]


class Shell(Control):
    """What following a script found: ``starts``, and ``called``, the scripts that it runs, which are not read."""

    def __init__(self, variables: Variables) -> None:
        super().__init__(variables)
        self.starts: list[Start] = []
        self.called: list[str] = []
        self._depth = 0
        self._outer: list[Word] = []  # what started the shell that is followed

    def _simple(self, statement: Simple) -> bool | None:
        words = list(statement.words)
        if not words:
            return True
        if words[0].plain in ("[", "[[", "test"):
            return self._test(words)
        if words[0].plain == "((":
            value = self.variables.number(" ".join(source(word) for word in words[1:-1]))
            return bool(value) if isinstance(value, int) else None
        if words[0].plain == "!":
            result = self._simple(Simple(tuple(words[1:]), statement.line))
            return None if result is None else not result
        before = []
        while words and is_assignment(words[0]):
            before.append(words.pop(0))
        if words:
            return self._called(before, words, statement.line)
        for word in before:
            self._assign(word)
        return True

    def _test(self, words: list[Raw]) -> bool | None:
        inside = words[1:] if words[0].plain == "test" else words[1:-1]
        found: list[Word] = []
        for raw in inside:
            # Between [[ ]] a value is one word whatever it holds; between [ ] an empty one is none, as in the shell.
            is_whole = words[0].plain == "[[" or any(piece.quoted for piece in raw.pieces)
            texts = [self._text(raw)] if is_whole else self.variables.words([raw])
            tested = [self._tested(raw, text) for text in texts]
            found += [word for word in tested if is_whole or word.text]
        return decide(found)

    def _tested(self, raw: Raw, text: Text) -> Word:
        """The word as a test sees it: a variable that is set nowhere in the script counts as unset."""
        names = [piece.text for piece in raw.pieces if piece.kind == "name"]
        if any(one.problem for one in text) and names and all(map(self.variables.is_free, names)):
            for name in names:
                self.variables.assumed.setdefault(name, raw.line)
            text = tuple(one if one.problem is None else Fragment("", one.line) for one in text)
        return as_word(text)

    def _text(self, word: Raw) -> Text:
        return self.variables.text(word.pieces)

    def _assign(self, word: Raw) -> str:
        """``NAME=value`` or ``NAME+=value``; the name."""
        head = word.pieces[0].text
        name, _, rest = head.partition("=")
        adds, name = name.endswith("+"), name.rstrip("+")
        if len(word.pieces) == 2 and word.pieces[1].kind == "array" and not rest:
            values = self.variables.words(word.pieces[1].words)
            known = self.variables.arrays.get(name, [])
            self.variables.scalars.pop(name, None)
            self.variables.arrays[name] = [*known, *values] if adds else values
            return name
        if self.variables.is_free(name) and any((one.kind, one.text) == ("name", name) for one in word.pieces):
            # ARGS="$ARGS --more", the first time.
            self.variables.assumed.setdefault(name, word.line)
            self.variables.assign(name, ())
        value = self.variables.text((dataclasses.replace(word.pieces[0], text=rest), *word.pieces[1:]))
        known_text = self.variables.scalars.get(name, ()) if adds else ()
        self.variables.assign(name, (*known_text, *value))
        return name

    def _called(self, before: list[Raw], words: list[Raw], line: int) -> bool | None:
        name = words[0].plain
        if name in _DECLARATIONS:
            return self._declare(name, words[1:], line)
        expanded = self.variables.words(words)
        return self._command(before, expanded, line) if expanded else True

    def _command(self, before: list[Raw], expanded: list[Text], line: int) -> bool | None:
        name, *operands = [as_word(text) for text in expanded]
        if name.text == "unset":
            for word in operands:
                self.variables.remove(word.text)
        elif name.text in _READERS:
            for word in operands:
                self.variables.assign(word.text, (Fragment(f"${word.text}", line, "it is read while running"),))
            return None
        elif name.text in _LEAVES:
            raise Leave(name.text, line, operands[0].text if operands else "0")
        elif name.text == "shift":
            count = operands[0].text if operands else "1"
            del self.variables.arguments[: int(count) if count.isdigit() else 0]
        elif name.text == "set" and operands and operands[0].text == "--":
            self.variables.arguments = expanded[2:]
        elif name.text in ("source", "."):
            self._not_read(" ".join(word.text for word in (name, *operands)), line)
        elif name.text in ("true", "false"):
            return name.text == "true"
        elif name.text in self._functions:
            return self._function(self._functions[name.text], expanded[1:])
        else:
            return self._program(before, expanded, line)
        return True

    def _declare(self, kind: str, words: list[Raw], line: int) -> bool:
        exports = kind == "export" or any("x" in (word.plain or "") for word in words if _is_option(word))
        for word in words:
            if _is_option(word):
                continue
            name = self._assign(word) if is_assignment(word) else self._declared(as_word(self._text(word)), line)
            if name and exports:
                self.variables.exported.add(name)
        return True

    def _declared(self, word: Word, line: int) -> str | None:
        """``export NAME`` and ``export "$NAME"=value``: the name."""
        found = ASSIGNMENT.fullmatch(word.text)
        if word.problem is not None:
            self.unplaced.append(Unplaced("script", f"export {word.text}", needs_running(word.problem), line))
            return None
        if found is not None:
            self.variables.assign(found[1], (Fragment(found[2], line),))
        return found[1] if found else word.text

    def _program(self, before: list[Raw], expanded: list[Text], line: int) -> bool | None:
        words = [as_word(text) for text in expanded]
        if words[0].text == "eval":
            return self._again(expanded[1:], line)
        shell = next((at for at, word in enumerate(words) if word.text.rpartition("/")[2] in _SHELLS), None)
        if shell is not None and starts_text([word.text for word in words]):
            # What starts the shell, such as srun, counts the machines of what the shell starts.
            outer, self._outer = self._outer, [*self._outer, *self._words(before), *words[:shell]]
            try:
                return self._again(expanded[shell + 2 : shell + 3], line)
            finally:
                self._outer = outer
        script = next((word.text for word in words[: (shell or 0) + 2] if word.text.endswith(".sh")), None)
        if script is not None:
            self._not_read(script, line)
        elif may_start(words):
            self._start(before, words)
        # How it ends is not known. It is taken to end well (mkdir DIR && torchrun ...) unless it is there to decide.
        return None if self._is_condition else True

    def _not_read(self, script: str, line: int) -> None:
        self.called.append(script)
        self.unplaced.append(Unplaced("script", script, "another file: it is not read", line))

    def _start(self, before: list[Raw], expanded: list[Word]) -> None:
        known, problems = self._environment()
        self.starts.append(Start((*self._outer, *self._words(before), *expanded), known, tuple(problems)))

    def _words(self, raws: list[Raw]) -> list[Word]:
        return [as_word(self._text(word)) for word in raws]

    def _environment(self) -> tuple[dict[str, str | None], list[Unplaced]]:
        known: dict[str, str | None] = dict.fromkeys(sorted(self.variables.unset))
        problems = []
        for name in sorted(self.variables.exported):
            word = as_word(self.variables.scalars.get(name, ()))
            if name not in self.variables.scalars:
                reason = "its value comes from the shell"
                problems.append(Unplaced("environment", f"export {name}", reason, None, needed=False))
            elif word.problem is not None:
                text = f"{name}={word.text}"
                problems.append(Unplaced("environment", text, needs_running(word.problem), word.line))
            else:
                known[name] = word.text
        return known, problems

    def _again(self, words: Sequence[Text], line: int) -> bool | None:
        """Read ``words`` as a script once more, as eval does; what is not known stays one piece."""
        script = " ".join("".join(map(self._marked, word)) for word in words)
        return self._nested(statements(script, line))

    def _marked(self, fragment: Fragment) -> str:
        if fragment.problem is None:
            return without_marks(fragment.text)
        self.variables.marks.append(fragment)
        return f"{MARK}{len(self.variables.marks) - 1}{MARK_END}"

    def _function(self, body: tuple[Statement, ...], arguments: list[Text]) -> bool | None:
        outer, self.variables.arguments = self.variables.arguments, arguments
        try:
            return self._nested(body)
        except Leave as leave:
            if leave.name != "return":
                raise
            return leave.status == "0"
        finally:
            self.variables.arguments = outer

    def _nested(self, body: tuple[Statement, ...]) -> bool | None:
        if self._depth >= _DEEPEST:
            return None
        self._depth += 1
        try:
            return self.run(body)
        finally:
            self._depth -= 1


def starts_text(words: Sequence[str]) -> bool:
    """Whether ``words`` hand a text to a shell, as in ``srun bash -c TEXT``."""
    shell = next((at for at, word in enumerate(words) if word.rpartition("/")[2] in _SHELLS), len(words))
    return list(words[shell + 1 : shell + 2]) in (["-c"], ["-lc"])


def _is_option(word: Raw) -> bool:
    return (word.plain or "").startswith("-")
