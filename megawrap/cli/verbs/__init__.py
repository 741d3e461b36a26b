"""The verbs. Each module has ``HELP``, ``configure`` (its own options) and ``run``, or ``ACTIONS`` (see ``verb``)."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from typing import NoReturn

from megawrap.cli import help_page
from megawrap.cli.verbs import (
    data,
    diff,
    explain,
    importing,
    launch,
    models,
    plan,
    preflight,
    preprocess,
    rules,
    surface,
    tokenizer,
)
from megawrap.cli.verbs.verb import Invocation, Verb, verbs_of
from megawrap.errors import ConfigError, Finding, nearest

__all__ = ["DEFAULT_VERB", "VERBS", "Invocation", "Verb", "parse"]


_MODULES = (launch, plan, explain, importing, diff, preprocess, data, tokenizer, preflight, models, rules, surface)
VERBS = {verb.name: verb for verb in itertools.chain.from_iterable(map(verbs_of, _MODULES))}
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
    if " ".join(words[:2]) in VERBS:
        return " ".join(words[:2]), words[2:]
    if words[0] in VERBS:
        return words[0], words[1:]
    if actions := [name for name in VERBS if name.startswith(f"{words[0]} ")]:
        return _need_action(words, actions)
    names = list(dict.fromkeys(name.split()[0] for name in VERBS))
    message = f"{words[0]!r} is neither a verb ({', '.join(names)}) nor an override (KEY=VALUE)"
    raise ConfigError(Finding(id="MW007", message=message, nearest=nearest(words[0], names)))


def _need_action(words: Sequence[str], actions: Sequence[str]) -> NoReturn:
    """A verb that only has actions, and none of them was named."""
    if set(words[1:]) & {"--help", "-h"}:
        help_page.show_actions(words[0], [(name, VERBS[name].help) for name in actions])
        raise SystemExit(0)
    what = next((word for word in words[1:] if not word.startswith("-")), None)
    message = f"megawrap {words[0]} {what}: there is no such action" if what else f"megawrap {words[0]}: to do what?"
    close = nearest(f"{words[0]} {what}", actions) if what else ()
    raise ConfigError(Finding(id="MW007", message=message, nearest=tuple(dict.fromkeys([*close, *actions]))))
