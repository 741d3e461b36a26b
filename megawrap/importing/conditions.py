"""``[ ... ]`` and ``[[ ... ]]``: true, false, or ``None`` where only running tells."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from megawrap.importing.command import Word

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-gt": operator.gt,
    "-ge": operator.ge,
    "-lt": operator.lt,
    "-le": operator.le,
}
_TEXTS = {"=": True, "==": True, "!=": False}


def decide(words: Sequence[Word]) -> bool | None:
    """The result of a test over ``words`` (those between the brackets)."""
    return _Test(list(words)).result()


class _Test:
    def __init__(self, words: list[Word]) -> None:
        self._words = words

    def result(self) -> bool | None:
        value = self._or()
        return value if not self._words else None

    def _or(self) -> bool | None:
        value = self._and()
        while self._next_is("-o", "||"):
            other = self._and()
            value = True if value or other else None if None in (value, other) else False
        return value

    def _and(self) -> bool | None:
        value = self._not()
        while self._next_is("-a", "&&"):
            other = self._not()
            value = False if False in (value, other) else None if None in (value, other) else True
        return value

    def _not(self) -> bool | None:
        if self._next_is("!"):
            value = self._not()
            return None if value is None else not value
        if self._next_is("("):
            value = self._or()
            return value if self._next_is(")") else None
        return self._primary()

    def _primary(self) -> bool | None:
        if len(self._words) >= 3 and self._words[1].text in (*_NUMBERS, *_TEXTS):
            left, relation, right = self._words[:3]
            del self._words[:3]
            return _compare(left, relation.text, right)
        if len(self._words) >= 2 and self._words[0].text in ("-z", "-n"):
            sign, word = self._words[:2]
            del self._words[:2]
            return None if word.problem else (word.text == "") == (sign.text == "-z")
        if len(self._words) >= 2 and self._words[0].text.startswith("-"):
            del self._words[:2]  # -f, -d, ...: files of the machine
            return None
        if not self._words:
            return False
        word = self._words.pop(0)
        return None if word.problem else word.text != ""

    def _next_is(self, *texts: str) -> bool:
        found = bool(self._words) and self._words[0].text in texts
        if found:
            self._words.pop(0)
        return found


def _compare(left: Word, relation: str, right: Word) -> bool | None:
    if left.problem or right.problem:
        return None
    if relation in _TEXTS:
        is_pattern = any(sign in right.text for sign in "*?[")
        return None if is_pattern else (left.text == right.text) == _TEXTS[relation]
    try:
        return _NUMBERS[relation](int(left.text), int(right.text))
    except ValueError:
        return None
