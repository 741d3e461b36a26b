"""One value → the words that express it on the target, or a finding that says why none can."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from megawrap.errors import Finding, nearest
from megawrap.megatron.surface import Argument, Option, Target
from megawrap.megatron.surface.releases import lifetime


@dataclasses.dataclass(frozen=True)
class Setting:
    """A wish: the option called ``name`` has ``value``, because ``key`` of the configuration says so."""

    name: str
    value: Any
    key: str


@dataclasses.dataclass(frozen=True)
class Emission:
    """A wish in the target's words. No words when ``value`` is the target's default anyway."""

    dest: str
    value: Any
    words: tuple[str, ...]
    keys: tuple[str, ...]
    is_default: bool


class Unfit(ValueError):
    """A value that the target cannot take."""

    def __init__(self, message: str, nearest: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.nearest = tuple(nearest)


def encode(setting: Setting, target: Target) -> Emission | Finding:
    """Express ``setting`` in the arguments of ``target``."""
    option = target.surface.option(setting.name)
    if option is None:
        return lacking(setting, target, target.surface.suggest(setting.name))
    try:
        return _store(setting, option.store) if option.store else _switch(setting, option)
    except Unfit as unfit:
        elsewhere = _elsewhere(setting, option.store, target.release.fork)
        message = "; ".join([f"{setting.key} = {_shown(setting.value)}: {unfit}", *elsewhere])
        return Finding(id="MW014", keys=(setting.key,), message=message, nearest=unfit.nearest)


def _elsewhere(setting: Setting, argument: Argument | None, fork: str) -> list[str]:
    """Which releases take the words that this target's argument does not."""
    if argument is None or argument.choices is None:
        return []
    values = setting.value if isinstance(setting.value, list | tuple) else [setting.value]
    phrases = [lifetime(argument.flag, fork, str(value)) for value in values if value not in argument.choices]
    return [phrase for phrase in phrases if phrase]


def lacking(setting: Setting, target: Target, nearest: Sequence[str]) -> Finding:
    """The finding that the target has no such argument, and which release has it."""
    flag = "--" + setting.name.lstrip("-").replace("_", "-")
    fork = target.release.fork
    phrases = [lifetime(spelling, fork) for spelling in (flag, flag.replace("--", "--no-", 1), setting.name)]
    known = next((phrase for phrase in phrases if phrase), None)
    return Finding(
        id="MW010",
        keys=(setting.key,),
        message=f"{setting.key}: {target.name} has no argument {flag}" + (f"; {known}" if known else ""),
        nearest=tuple(nearest),
    )


def _switch(setting: Setting, option: Option) -> Emission:
    value = setting.value
    if not isinstance(value, bool):
        raise Unfit("it is a switch: true or false", ("true", "false"))
    argument = option.on if value else option.off
    is_default = value == option.default
    given = argument or option.on or option.off
    assert given is not None
    if argument is None and not is_default:
        raise Unfit(f"the target's {given.flag} cannot be turned {'on' if value else 'off'}: leave it unset")
    return Emission(
        dest=given.dest,
        value=_parsed_switch(option, value),
        words=() if argument is None else (_switch_word(argument, value),),
        keys=(setting.key,),
        is_default=is_default,
    )


def _parsed_switch(option: Option, value: bool) -> bool:
    """What the parser holds under ``dest``: ``--no-load-optim`` is stored as no_load_optim, load_optim the wrong way
    round."""
    inverted = option.on is None and option.off is not None and option.off.action == "store_true"
    flipped = option.on is not None and option.on.action == "store_false"
    return value != (inverted or flipped)


def _switch_word(argument: Argument, value: bool) -> str:
    if argument.action != "boolean_optional":
        return argument.flag
    return next(flag for flag in argument.flags if flag.startswith("--no-") != value)


def _store(setting: Setting, argument: Argument) -> Emission:
    many, given = argument.nargs is not None, _shaped(setting.value, argument)
    values = list(given) if isinstance(given, list | tuple) else [given]
    if not many and isinstance(given, list | tuple | dict):
        raise Unfit(f"{argument.flag} takes one value")
    if isinstance(argument.nargs, int) and len(values) != argument.nargs:
        raise Unfit(f"{argument.flag} takes {argument.nargs} values, not {len(values)}")
    converted = [_convert(value, argument) for value in values]
    value = converted if many else converted[0]
    return Emission(
        dest=argument.dest,
        value=value,
        words=_words(argument, converted),
        keys=(setting.key,),
        is_default=value == argument.default,
    )


def _shaped(value: Any, argument: Argument) -> Any:
    """A pair is one word, ``(4095,0)``, or two, as the release takes it."""
    if argument.nargs == 2 and isinstance(value, str):
        return value.strip("( )").split(",")
    if argument.type == "tuple_type" and isinstance(value, list | tuple):
        return f"({','.join(map(str, value))})"
    return value


def _words(argument: Argument, values: list[Any]) -> tuple[str, ...]:
    words = [repr(value) if isinstance(value, float) else str(value) for value in values]
    if len(words) == 1 and words[0].startswith("-") and isinstance(values[0], str):
        return (f"{argument.flag}={words[0]}",)
    return (argument.flag, *words)


def _convert(value: Any, argument: Argument) -> Any:
    if isinstance(value, bool) or value is None:
        raise Unfit(f"{argument.flag} takes a value{_of_type(argument)}")
    if argument.choices is not None and value not in argument.choices:
        known = [str(choice) for choice in argument.choices]
        raise Unfit(f"{argument.flag} takes one of: {', '.join(known)}", nearest(str(value), known))
    if argument.type == "int":
        return _number(value, int, argument)
    if argument.type == "float":
        return _number(value, float, argument)
    if argument.type == "bool":
        raise Unfit(f"{argument.flag} turns every word into true; use another way")
    return value if isinstance(value, int) and (argument.type or "").endswith("freq_type") else str(value)


def _number(value: Any, kind: type, argument: Argument) -> Any:
    try:
        number = kind(value)
    except (TypeError, ValueError):
        raise Unfit(f"{argument.flag} takes a value{_of_type(argument)}") from None
    if kind is int and float(value) != number:
        raise Unfit(f"{argument.flag} takes a whole number", (str(number),))
    return number


def _of_type(argument: Argument) -> str:
    return f" of type {argument.type}" if argument.type else ""


def _shown(value: Any) -> str:
    return {True: "true", False: "false"}.get(value, repr(value)) if isinstance(value, bool) else repr(value)
