"""Walk the fields of the sections, add what is special, add ``megatron.args``: one argument list, no conflicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from megawrap.config import schema
from megawrap.config.origins import Origins
from megawrap.config.sections.root import Config
from megawrap.errors import ConfigError, Finding
from megawrap.megatron.compile.encode import Emission, Setting, encode, lacking
from megawrap.megatron.compile.otherwise import otherwise
from megawrap.megatron.compile.special import special
from megawrap.megatron.surface import Target


@dataclasses.dataclass(frozen=True)
class Compiled:
    """The argument list of a configuration, with the keys each argument comes from."""

    emissions: tuple[Emission, ...]

    def argv(self, *, everything: bool = False) -> list[str]:
        """The words after the program; with ``everything`` also those that say the target's default."""
        return [word for one in self.emissions if everything or not one.is_default for word in one.words]

    def values(self) -> dict[str, object]:
        """``dest`` → value, of everything that the configuration sets."""
        return {one.dest: one.value for one in self.emissions}

    def keys_of(self, dest: str) -> tuple[str, ...]:
        """Keys of the configuration that set ``dest``; empty when the target's default is in force."""
        return next((one.keys for one in self.emissions if one.dest == dest), ())


def compile_arguments(config: Config, target: Target, origins: Callable[[], Origins]) -> Compiled:
    """Compile ``config`` for ``target``. ``origins`` is only called to word an error.

    Raises:
        ConfigError: with every argument that the target lacks, every unfit value and every conflict at once.
    """
    emissions: dict[str, Emission] = {}
    findings: list[Finding] = []
    for result in _results(config, target):
        if isinstance(result, Finding):
            findings.append(dataclasses.replace(result, origin=origins().of(*result.keys)))
            continue
        earlier = emissions.get(result.dest)
        if earlier is not None and earlier.value != result.value:
            findings.append(_conflict(earlier, result, origins()))
        keys = (*(earlier.keys if earlier else ()), *result.keys)
        emissions[result.dest] = dataclasses.replace(result, keys=keys)
    if findings:
        raise ConfigError(findings)
    return Compiled(tuple(emissions.values()))


def _results(config: Config, target: Target) -> Iterator[Emission | Finding]:
    for setting in _of_sections(config, target):
        if target.surface.option(setting.name) is not None:
            yield encode(setting, target)
            continue
        instead, possible = otherwise(setting, config, target.surface)
        if instead is None:
            yield lacking(setting, target, (*(f"{setting.key}={value}" for value in possible), f"{setting.key}=null"))
        else:
            yield from (encode(one, target) for one in instead)
    for name, value in config.megatron.args.items():
        if value is not None:
            yield encode(Setting(name, value, f"megatron.args.{name}"), target)


def _of_sections(config: Config, target: Target) -> Iterator[Setting]:
    for key, field in schema.fields().items():
        value = schema.get(config, key)
        if field.flag is not None and value is not None:
            yield Setting(field.flag, value, key)
    yield from special(config, target.surface)


def _conflict(first: Emission, second: Emission, origins: Origins) -> Finding:
    keys = (*first.keys, *second.keys)
    return Finding(
        id="MW016",
        keys=keys,
        message=f"{first.keys[0]} = {first.value!r} and {second.keys[0]} = {second.value!r} set the same argument, "
        f"{first.dest}: set one of them",
        nearest=(first.keys[0],),
        origin=origins.of(*keys),
    )
