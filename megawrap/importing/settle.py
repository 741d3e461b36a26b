"""Presets, keys and ``megatron.args`` that together compile to the arguments of the original command."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from megawrap.config import schema
from megawrap.config.compose import compose
from megawrap.config.origins import Origins
from megawrap.config.sections.root import Config
from megawrap.errors import ConfigError
from megawrap.importing.arguments import Arguments
from megawrap.importing.command import Unplaced
from megawrap.importing.wanted import Wanted, neutral
from megawrap.megatron.compile import Compiled, compile_arguments
from megawrap.megatron.compile.encode import Setting, encode
from megawrap.megatron.surface import Argument, Target

_OPEN_DOOR = "megatron.args."
_ROUNDS = 6


@dataclasses.dataclass(frozen=True)
class Settled:
    """``keys`` and ``args`` to write over the presets, and the arguments that no key can express."""

    keys: Mapping[str, Any]
    args: Mapping[str, Any]
    unplaced: tuple[Unplaced, ...]


def settle(
    choices: Mapping[str, str], words: Sequence[str], wanted: Wanted, arguments: Arguments, target: Target
) -> Settled:
    """Find what to write over ``choices`` (group → preset) and ``words`` (the user's own overrides). Compiles what it
    finds and mends what comes out differently, so it needs to know nothing about how a section compiles."""
    base = compose([*(f"{group}={choice}" for group, choice in choices.items()), *words]).tree
    return _Settling(base, wanted, arguments, target).run()


class _Settling:
    def __init__(self, base: DictConfig, wanted: Wanted, arguments: Arguments, target: Target) -> None:
        OmegaConf.set_struct(base, False)
        self._base, self._wanted, self._arguments, self._target = base, wanted, arguments, target
        self._types = OmegaConf.structured(Config)
        self._keys: dict[str, Any] = {}
        self._args: dict[str, Any] = {}
        self._closed: set[str] = set()  # keys that turned out to say something else than the original
        self._unplaced: list[Unplaced] = []

    def run(self) -> Settled:
        for _ in range(_ROUNDS):
            if not self._mend():
                break
        return Settled(self._keys, self._args, tuple(self._unplaced))

    def _mend(self) -> bool:
        """One round: set keys, compile, take back what is wrong. Whether anything changed."""
        changed = self._set_keys()
        try:
            compiled = compile_arguments(self._config(), self._target, lambda: Origins({}))
        except ConfigError as refused:
            return self._close([key for finding in refused.findings for key in finding.keys]) or changed
        return self._set_args(compiled) or changed

    def _set_keys(self) -> bool:
        config, before = self._config(), dict(self._keys)
        for key in schema.fields():
            if not self._wanted.concerns(key):
                continue
            value = schema.get(config, key)
            if key in self._closed:
                self._keys |= {key: neutral(key)} if value != neutral(key) else {}
            elif not self._wanted.is_met(key, value):
                self._keys[key] = self._accepted(key)
        return self._keys != before

    def _accepted(self, key: str) -> Any:
        """The wanted value, unless the section's type refuses it."""
        value = self._wanted.value(key)
        try:
            OmegaConf.update(self._types, key, literal(value))
        except OmegaConfBaseException:
            self._closed.add(key)
            return neutral(key)
        return value

    def _set_args(self, compiled: Compiled) -> bool:
        """Whatever the sections do not say goes through ``megatron.args``."""
        now = self._target.surface.defaults() | compiled.values()
        changed = False
        for dest, value in self._arguments.values.items():
            if now[dest] == value:
                continue
            changed |= self._close([key for key in compiled.keys_of(dest) if not key.startswith(_OPEN_DOOR)])
            changed |= self._through_open_door(dest, value)
        return changed

    def _through_open_door(self, dest: str, value: Any) -> bool:
        if dest not in self._arguments.given:
            return False
        given = self._arguments.given[dest].argument
        rows = [given, *(row for row in self._target.surface.arguments if row.dest == dest and row != given)]
        for name, setting in _candidates(rows, value):
            emission = encode(Setting(name, setting, f"{_OPEN_DOOR}{name}"), self._target)
            if getattr(emission, "value", None) == value and f"{_OPEN_DOOR}{name}" not in self._closed:
                is_new = name not in self._args
                self._args[name] = setting
                return is_new
        return self._give_up(dest)

    def _give_up(self, dest: str) -> bool:
        words = self._arguments.given[dest].words
        one = Unplaced.of("argument", words, "no value in a configuration compiles to it")
        if one not in self._unplaced:
            self._unplaced.append(one)
        return False

    def _close(self, keys: Sequence[str]) -> bool:
        """Say nothing through ``keys`` any more. Whether that is new."""
        new = set(keys) - self._closed
        self._closed |= new
        for key in new:
            self._args.pop(key.removeprefix(_OPEN_DOOR), None)
        return bool(new)

    def _config(self) -> Config:
        tree = OmegaConf.merge(self._base, nested(self._keys, self._args))
        config = OmegaConf.to_object(tree)
        assert isinstance(config, Config)
        return config


def nested(keys: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys and Megatron arguments as the tree of a configuration, text guarded against interpolation."""
    tree: dict[str, Any] = {}
    for key, value in keys.items():
        section, _, name = key.partition(".")
        tree.setdefault(section, {})[name] = literal(value)
    if args:
        tree.setdefault("megatron", {})["args"] = {name: literal(value) for name, value in args.items()}
    return tree


def literal(value: Any) -> Any:
    """``value`` such that OmegaConf gives it back as it is: ``${`` in text would name another key."""
    if isinstance(value, list):
        return [literal(one) for one in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", value)


def _candidates(rows: Sequence[Argument], value: Any) -> list[tuple[str, Any]]:
    """(name below ``megatron.args``, value) that might set what ``rows`` share to ``value``."""
    found: list[tuple[str, Any]] = []
    for row in rows:
        name = row.flag.lstrip("-").replace("-", "_")
        found += [(name, value)] if row.takes_value else [(name, True), (name, False)]
    return found
