"""Megatron's values → keys of the configuration: the inverse of ``megawrap.megatron.compile``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from megawrap.config import schema
from megawrap.importing.arguments import Arguments
from megawrap.megatron.compile import Emission
from megawrap.megatron.compile.encode import Setting, encode
from megawrap.megatron.surface import Target


class Wanted:
    """Which value each key ought to have so that the plan's arguments are those of the original command."""

    def __init__(self, arguments: Arguments, target: Target, placed: Mapping[str, Any]) -> None:
        self._arguments = arguments
        self._target = target
        self._fixed = {**_special(arguments, target), **placed}
        self._values = {**self._of_fields(), **self._fixed}

    def value(self, key: str) -> Any:
        """The value that ``key`` ought to have; what says nothing when the original says nothing."""
        return self._values.get(key, neutral(key))

    def concerns(self, key: str) -> bool:
        """Whether the original decides about ``key`` at all: it becomes an argument, or a launcher word."""
        return key in self._fixed or schema.fields()[key].flag is not None

    def is_met(self, key: str, value: Any) -> bool:
        """Whether ``value`` at ``key`` has the effect of the original."""
        if key in self._fixed:
            return bool(value == self._fixed[key])
        if value is None:
            return key not in self._values or self._is_default(key)
        return self._is_expressed(key, value)

    def _of_fields(self) -> dict[str, Any]:
        found = {}
        for key, field in schema.fields().items():
            dest = self._dest(field.flag)
            if dest is None or dest not in self._arguments.given:
                continue
            candidates = [self._arguments.values[dest], True, False]
            fit = [value for value in candidates if value is not None and self._is_expressed(key, value)]
            if fit:
                found[key] = fit[0]
        return found

    def _is_expressed(self, key: str, value: Any) -> bool:
        emission = self._emission(key, value)
        return emission is not None and emission.value == self._arguments.values[emission.dest]

    def _is_default(self, key: str) -> bool:
        emission = self._emission(key, self._values[key])
        return emission is not None and emission.is_default

    def _emission(self, key: str, value: Any) -> Emission | None:
        flag = schema.fields()[key].flag
        result = encode(Setting(flag, value, key), self._target) if flag else None
        return result if isinstance(result, Emission) else None

    def _dest(self, flag: str | None) -> str | None:
        option = self._target.surface.option(flag) if flag else None
        argument = option and (option.store or option.on or option.off)
        return argument.dest if argument else None


def neutral(key: str) -> Any:
    """The value of ``key`` that sets no argument."""
    field = schema.fields()[key]
    return _SAYS_NOTHING.get(key, None if "None" in field.type else field.default)


def _special(arguments: Arguments, target: Target) -> dict[str, Any]:
    """Keys that no single argument stands for; see ``megawrap.megatron.compile.special``."""
    given = {dest: arguments.values[dest] for dest in arguments.given}
    return {**_precision(given), **_attention(given, target), **_data(given)}


def _precision(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"precision.dtype": "bf16" if given.get("bf16") else "fp16" if given.get("fp16") else "fp32"}


def _attention(given: Mapping[str, Any], target: Target) -> dict[str, Any]:
    backend = given.get("attention_backend")
    if "--attention-backend" not in target.surface and given.get("use_flash_attn"):
        backend = "flash"
    return {"attention.backend": backend if backend in schema.fields()["attention.backend"].choices else None}


def _data(given: Mapping[str, Any]) -> dict[str, Any]:
    paths = given.get("data_path") or []
    if given.get("mock_data"):
        return {"data.source": "mock"}
    if not paths:
        return {"data.source": None}
    if len(paths) == 1:
        return {"data.source": "prefix", "data.prefix": paths[0]}
    return {"data.source": "blend", "data.blend": list(paths)}


_SAYS_NOTHING = {"precision.dtype": "fp32"}
