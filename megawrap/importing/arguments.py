"""Argument words → the values that the target's parser would hold, and the words it would refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from megawrap.errors import ConfigError
from megawrap.importing.command import Unplaced, Word, needs_running
from megawrap.megatron.surface import Argument, Surface, Target, releases
from megawrap.megatron.surface.parser import parse
from megawrap.megatron.surface.releases import lifetime


@dataclasses.dataclass(frozen=True)
class Given:
    """One argument as it was spelled: the flag, its words (with the flag), and the target's argument."""

    flag: str
    words: tuple[Word, ...]
    argument: Argument

    @property
    def texts(self) -> list[str]:
        """The words as Megatron would get them."""
        return [word.text for word in self.words]


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What the words say: ``values`` of every ``dest`` with defaults, ``given`` the last spelling of each that was
    given, ``unplaced`` the words that the target's parser refuses."""

    values: Mapping[str, Any]
    given: Mapping[str, Given]
    unplaced: tuple[Unplaced, ...]
    having_all: tuple[str, ...]
    """Releases, newest first, whose arguments include every flag; empty when the target has them all."""


def read_arguments(words: Sequence[Word], target: Target) -> Arguments:
    """Read ``words`` as the parser of ``target`` would."""
    found: list[Given] = []
    unplaced: list[Unplaced] = []
    for one in _groups(words, target):
        found.append(one) if isinstance(one, Given) else unplaced.append(one)
    fit, unfit = _fit(found, target.surface)
    values = parse(target.surface, _texts(fit))
    given = {one.argument.dest: one for one in fit}
    return Arguments(values, given, (*unplaced, *unfit, *_overruled(fit, given)), _having_all(words, target))


def literal_flags(surface: Surface) -> dict[str, Argument]:
    """Spelling → argument. Megatron's parser takes no abbreviation and tells ``-`` from ``_``."""
    return {flag: one for one in surface.arguments for flag in one.flags}


def _overruled(found: Sequence[Given], last: Mapping[str, Given]) -> Iterator[Unplaced]:
    """Arguments that are given again, with other words, further on."""
    for one in found:
        winner = last[one.argument.dest]
        if one.texts != winner.texts:
            yield Unplaced.of("argument", one.words, f"given again: {' '.join(winner.texts)} wins", needed=False)


def _groups(words: Sequence[Word], target: Target) -> Iterator[Given | Unplaced]:
    flags = literal_flags(target.surface)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, equals, _ = word.text.partition("=")
        if word.problem is not None and not (equals and flag in flags):
            yield Unplaced.of("argument", [word], needs_running(word.problem))
        elif not flag.startswith("-"):
            yield Unplaced.of("argument", [word, *_until_flag(rest, len(rest))], "no flag takes it")
        elif flag in flags:
            taken = [] if equals else _take(rest, flags[flag])
            yield _given(flag, (word, *taken), flags[flag])
        else:
            yield _unknown(flag, (word, *_until_flag(rest, len(rest))), target)


def _given(flag: str, words: tuple[Word, ...], argument: Argument) -> Given | Unplaced:
    problem = next((word.problem for word in words if word.problem is not None), None)
    if problem is not None:
        return Unplaced.of("argument", words, needs_running(problem))
    return Given(flag, words, argument)


def _take(rest: list[Word], argument: Argument) -> list[Word]:
    if not argument.takes_value:
        return []
    limits = {None: 1, "?": 1, "*": len(rest), "+": len(rest)}
    limit = argument.nargs if isinstance(argument.nargs, int) else limits[argument.nargs]
    return _until_flag(rest, limit)


def _until_flag(rest: list[Word], limit: int) -> list[Word]:
    taken: list[Word] = []
    while rest and len(taken) < limit and not rest[0].text.startswith("--"):
        taken.append(rest.pop(0))
    return taken


def _unknown(flag: str, words: tuple[Word, ...], target: Target) -> Unplaced:
    known = lifetime(flag, target.release.fork)
    close = tuple(target.surface.suggest(flag))
    reason = f"{target.name} has no argument {flag}"
    if known:
        reason += f"; {known}"
    elif close:
        reason += f"; it has {', '.join(close)}"
    return Unplaced.of("argument", words, reason, nearest=close)


def _fit(found: list[Given], surface: Surface) -> tuple[list[Given], list[Unplaced]]:
    """Those that the parser takes, and the others with what it says. Halves the list until each culprit is alone."""
    try:
        parse(surface, _texts(found))
    except ConfigError as refused:
        if len(found) == 1:
            return [], [Unplaced.of("argument", found[0].words, str(refused))]
        middle = len(found) // 2
        first, second = _fit(found[:middle], surface), _fit(found[middle:], surface)
        return first[0] + second[0], first[1] + second[1]
    return found, []


def _texts(found: Sequence[Given]) -> list[str]:
    return [text for one in found for text in one.texts]


def _having_all(words: Sequence[Word], target: Target) -> tuple[str, ...]:
    flags = {word.text.partition("=")[0] for word in words if word.text.startswith("--")}
    if flags <= set(literal_flags(target.surface)):
        return ()
    return tuple(one.id for one in reversed(releases()) if flags <= set(literal_flags(one.surface)))
