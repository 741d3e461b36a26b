"""The verbs. Each module has ``HELP``, ``configure`` (its own options) and ``run``."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NoReturn

from megawrap.cli import help_page
from megawrap.cli.verbs import diff, explain, importing, launch, models, plan, preflight, preprocess, rules, surface
from megawrap.errors import ConfigError, Finding, nearest


@dataclasses.dataclass(frozen=True)
class Verb:
    """A verb: a line of help, its options, what it does."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Invocation], int]


@dataclasses.dataclass(frozen=True)
class Invocation:
    """A parsed command: the verb, its options, the words that are Hydra overrides, and the words of another command,
    which stand after ``--``."""

    verb: str
    options: argparse.Namespace
    overrides: tuple[str, ...]
    command: tuple[str, ...] = ()


def _verb(module: ModuleType) -> Verb:
    # A verb may be a word that no module can be called, such as import.
    name = getattr(module, "NAME", module.__name__.rsplit(".", 1)[-1])
    return Verb(name, module.HELP, module.configure, module.run)


_MODULES = (launch, plan, explain, importing, diff, preprocess, preflight, models, rules, surface)
VERBS = {verb.name: verb for verb in map(_verb, _MODULES)}
DEFAULT_VERB = "launch"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(Finding(id="MW008", message=f"{self.prog}: {message}"))


def parse(words: Sequence[str]) -> Invocation:
    """Split ``words`` into verb, options and overrides. The verb is the first word that is neither an option nor
    contains ``=``; without one it is ``launch``.

    Raises:
        ConfigError: for an unknown verb or option.
        SystemExit: after printing the help that was asked for.
    """
    words, command = _split_command(words)
    verb, rest = _take_verb(list(words))
    parser = _Parser(prog=f"megawrap {verb}", add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--json", action="store_true", help="print one JSON object (docs/json.md)")
    parser.add_argument("--config-dir", "-cd", metavar="DIR", help="a folder of your own groups and choices")
    parser.add_argument("--config-name", "-cn", metavar="NAME", help="the primary configuration (config)")
    parser.add_argument("--help", "-h", action="store_true", help="show this help")
    VERBS[verb].configure(parser)
    options = parser.parse_intermixed_args(rest)
    if options.help:
        named = next((word for word in words if "=" not in word and not word.startswith("-")), None)
        help_page.show(parser if named else None, VERBS[verb].help)
        raise SystemExit(0)
    if command and verb != importing.NAME:
        raise ConfigError(Finding(id="MW008", message=f"megawrap {verb}: it takes no words after --"))
    return Invocation(verb, options, tuple(options.words), tuple(command))


def _split_command(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Our own words, and those after the first ``--``, which are another command's and stay as they are."""
    at = list(words).index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _take_verb(words: list[str]) -> tuple[str, list[str]]:
    if not words or words[0].startswith("-") or "=" in words[0]:
        return DEFAULT_VERB, words
    if words[0] in VERBS:
        return words[0], words[1:]
    raise ConfigError(
        Finding(
            id="MW007",
            message=f"{words[0]!r} is neither a verb ({', '.join(VERBS)}) nor an override (KEY=VALUE)",
            nearest=nearest(words[0], VERBS),
        )
    )
