"""One side of a comparison: a configuration, a plan, a run directory or an example run, as effective arguments."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import orjson

from megawrap.config.compose import Composed, compose
from megawrap.errors import ConfigError, Finding, errors
from megawrap.estimate.parameters import total_parameters
from megawrap.hardware.environment import is_secret
from megawrap.importing import presets
from megawrap.importing.arguments import read_arguments
from megawrap.importing.command import Word
from megawrap.importing.examples import example
from megawrap.importing.wanted import Wanted
from megawrap.importing.writing import CONFIG_NAME
from megawrap.megatron.layout import Layout
from megawrap.megatron.surface import Target, release
from megawrap.plan import build

MEGATRONS_DEFAULT = "Megatron's default"
_KINDS = (
    'is neither overrides ("model=NAME parallel=NAME"), a folder written by import, a YAML file, a run directory, a '
    "plan as JSON, nor example:NAME"
)


@dataclasses.dataclass(frozen=True)
class Value:
    """An argument's value, where it was set, and whether the target would have it anyway."""

    value: Any
    origin: str
    is_default: bool


@dataclasses.dataclass(frozen=True)
class Side:
    """``arguments`` are by ``dest`` with the target's defaults; ``layout`` is empty and ``parameters`` ``None`` where
    they are not known. ``findings``: why the configuration cannot be launched, as warnings."""

    name: str
    kind: str
    megatron: str
    arguments: Mapping[str, Value]
    environment: Mapping[str, str | None]
    layout: Mapping[str, int | None]
    parameters: int | None
    findings: tuple[Finding, ...] = ()


def side(word: str) -> Side:
    """What ``word`` names: ``example:NAME``, a run directory, a folder written by ``import``, a YAML configuration, a
    plan as JSON, or overrides in one word.

    Raises:
        ConfigError: when it is none of them.
    """
    path = Path(word)
    if word.startswith("example:"):
        return _of_example(word)
    if (path / "plan.json").is_file():
        return _of_run(path)
    if (path / f"{CONFIG_NAME}.yaml").is_file():
        return _of_config(word, compose([], config_dir=word, config_name=CONFIG_NAME))
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return _of_config(word, compose([], config_dir=str(path.parent), config_name=path.stem))
    if path.is_file():
        return _of_plan(path)
    if "=" in word:
        return _of_config(word, compose(shlex.split(word)))
    return _refuse(word, _KINDS)


def _refuse(word: str, what: str) -> NoReturn:
    raise ConfigError(Finding(id="MW037", message=f"{word} {what}"))


def _of_config(name: str, composed: Composed) -> Side:
    plan, folder = build(composed, ambient={}), composed.config.run.dir
    arguments = _defaults(plan.target)
    for one in plan.compiled.emissions:
        origin = ", ".join(dict.fromkeys(composed.origins.of(*one.keys)))
        arguments[one.dest] = Value(_below(folder, one.value), origin, one.is_default)
    sizes = dataclasses.asdict(plan.layout)
    return Side(
        name,
        "configuration",
        plan.target.name,
        arguments,
        _readable(plan.environment),
        sizes,
        plan.parameters,
        tuple(_as_warning(name, one) for one in errors(plan.findings)),
    )


def _as_warning(name: str, finding: Finding) -> Finding:
    """Two may be compared though one of them could not run."""
    message = f"{name} cannot be launched: {finding.message}"
    return dataclasses.replace(finding, severity="warning", message=message)


def _of_example(name: str) -> Side:
    release_id, command = example(name.removeprefix("example:"))
    target = Target("release", None, release(release_id))
    arguments = _read(list(command.arguments), target, name)
    ranks = command.placed["cluster.gpus_per_node"] * command.placed.get("cluster.nodes", 1)
    values = {dest: one.value for dest, one in arguments.items()}
    sizes = dataclasses.asdict(Layout.of(values, ranks))
    wanted = Wanted(read_arguments(command.arguments, target), target, {})
    parameters = total_parameters(values, presets.vocabulary(wanted, command))
    return Side(name, "example", release_id, arguments, _readable(command.environment), sizes, parameters)


def _of_plan(file: Path) -> Side:
    plan = _json(file)
    try:
        target = Target("release", plan["megatron"]["version"], release(plan["megatron"]["release"]))
        arguments = _read([Word(word) for word in plan["argv"]], target, file.name, plan["run_dir"])
        parameters = plan["model"]["parameters"]
        return Side(
            str(file), "plan", target.name, arguments, _readable(plan["environment"]), plan["layout"], parameters
        )
    except (KeyError, TypeError):
        _refuse(str(file), "is not a plan as `megawrap plan --json` prints it")


def _of_run(folder: Path) -> Side:
    plan, rows, environment = (_json(folder / f"{name}.json") for name in ("plan", "arguments", "environment"))
    try:
        arguments = {dest: _row(row, plan["run_dir"]) for dest, row in rows.items()}
        variables = {**environment["ranks"], **dict.fromkeys(environment["unset"])}
        name, parameters = plan["megatron"]["name"], plan["model"]["parameters"]
        return Side(str(folder), "run", name, arguments, variables, plan["layout"], parameters)
    except (KeyError, TypeError):
        _refuse(str(folder), "is not a whole run directory")


def _readable(environment: Mapping[str, str | None]) -> dict[str, str | None]:
    """Secrets masked, as in a run directory."""
    return {name: "***" if value and is_secret(name) else value for name, value in environment.items()}


def _below(folder: str | None, value: Any) -> Any:
    """A path in the run directory without the directory: it is named after the time, which says nothing of the run."""
    if folder is None or not isinstance(value, str) or not Path(value).is_relative_to(folder):
        return value
    return f"${{run.dir}}/{Path(value).relative_to(folder)}"


def _row(row: Mapping[str, Any], folder: str | None) -> Value:
    return Value(_below(folder, row["value"]), ", ".join(dict.fromkeys(row["origin"])), not row["keys"])


def _json(file: Path) -> Any:
    try:
        return orjson.loads(file.read_bytes())
    except OSError as problem:
        _refuse(str(file), f"cannot be read: {problem.strerror}")
    except orjson.JSONDecodeError as problem:
        _refuse(str(file), f"is not JSON: {problem}")


def _read(words: list[Word], target: Target, origin: str, folder: str | None = None) -> dict[str, Value]:
    read, values = read_arguments(words, target), _defaults(target)
    for dest in read.given:
        value = read.values[dest]
        values[dest] = Value(_below(folder, value), origin, value == values[dest].value)
    for one in (row for row in read.unplaced if row.needed):
        flag, _, words_behind = one.words.partition(" ")
        values[flag] = Value(words_behind or True, origin, False)
    return values


def _defaults(target: Target) -> dict[str, Value]:
    return {dest: Value(value, MEGATRONS_DEFAULT, True) for dest, value in target.surface.defaults().items()}
