"""A parser with the target's arguments, for reading an argument list back: no torch, no Megatron."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from megawrap.errors import ConfigError, Finding
from megawrap.megatron.surface.argument import Argument
from megawrap.megatron.surface.surface import Surface


def parse(surface: Surface, argv: Sequence[str]) -> dict[str, Any]:
    """``dest`` → value, defaults included, as Megatron's own parser would give them. Converters that only Megatron has
    (layer patterns, tuples) leave their words as they are.

    Raises:
        ConfigError: for an unknown flag, a word that does not convert, or a value outside the choices.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    for argument in surface.arguments:
        _add(parser, argument)
    return vars(parser.parse_args(list(argv)))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(Finding(id="MW013", keys=("megatron.args",), message=f"Megatron's parser: {message}"))


def _add(parser: argparse.ArgumentParser, argument: Argument) -> None:
    if argument.action in ("store_true", "store_false"):
        parser.add_argument(*argument.flags, dest=argument.dest, action=argument.action, default=argument.default)
    elif argument.action == "boolean_optional":
        positive = [flag for flag in argument.flags if not flag.startswith("--no-")]
        action = argparse.BooleanOptionalAction
        parser.add_argument(*positive, dest=argument.dest, action=action, default=argument.default)
    else:
        parser.add_argument(
            *argument.flags,
            dest=argument.dest,
            type=_CONVERTERS.get(argument.type or "", str),
            nargs=argument.nargs,
            choices=argument.choices,
            default=argument.default,
        )


def _pattern(word: str) -> int | str:
    return int(word) if word.lstrip("-").isdigit() else word


_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "moe_freq_type": _pattern,
    "no_rope_freq_type": _pattern,
    "la_freq_type": _pattern,
}
