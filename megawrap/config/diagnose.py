"""Why Hydra could not compose: every mistake in the overrides as a finding, not only the first that Hydra met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from megawrap.config import schema
from megawrap.config.sections.root import Config
from megawrap.config.words import as_text
from megawrap.errors import Finding, nearest


def diagnose(overrides: Sequence[str], loader: Any) -> list[Finding]:
    """Findings for ``overrides`` that cannot be composed."""
    return [finding for word in overrides for finding in _check(word, loader)]


def _check(word: str, loader: Any) -> Iterator[Finding]:
    try:
        override = OverridesParser.create().parse_override(as_text(word))
    except HydraException as problem:
        yield Finding(
            id="MW005",
            message=f"{word!r} is not an override that Hydra can read (KEY=VALUE): {_first_line(problem)}",
            origin=(_override_origin(word),),
        )
        return
    key = override.key_or_group
    if key.startswith("hydra"):
        return
    if key in group_names(loader):
        yield from _check_choice(override, loader)
    elif not schema.knows(key):
        yield unknown_key(key, group_names(loader), _override_origin(word))
    elif not override.is_delete() and not override.is_sweep_override():
        yield from wrong_type(key, override.value(), _override_origin(word))


def group_names(loader: Any) -> list[str]:
    """Names of the configuration groups, yours included."""
    return [name for name in loader.get_group_options("", results_filter=ObjectType.GROUP) if name != "hydra"]


def choices(loader: Any, group: str) -> list[str]:
    """Names of the choices in a group; files that only serve others as a base are left out."""
    return [name for name in loader.get_group_options(group) if name != "base"]


def _check_choice(override: Override, loader: Any) -> Iterator[Finding]:
    group, value = override.key_or_group, override.value()
    if not isinstance(value, str) or value in loader.get_group_options(group):
        return
    known = choices(loader, group)
    yield Finding(
        id="MW001",
        keys=(group,),
        message=f"{group}={value}: there is no such {group}. There are: {', '.join(known)}",
        nearest=tuple(f"{group}={name}" for name in nearest(value, known)),
        origin=(_override_origin(override.input_line),),
    )


def unknown_key(key: str, groups: Iterable[str], origin: str) -> Finding:
    """Nothing has this key; ``origin``: who set it."""
    known = [*schema.fields(), *groups]
    leaf = key.rsplit(".", 1)[-1]
    same_leaf = [other for other in known if other.rsplit(".", 1)[-1] == leaf]
    return Finding(
        id="MW002",
        keys=(key,),
        message=f"{key}: there is no such key. An argument of Megatron that no section has is set by "
        f"megatron.args.{leaf}=VALUE",
        nearest=tuple(dict.fromkeys([*same_leaf, *nearest(key, known)]))[:3],
        origin=(origin,),
    )


def wrong_type(key: str, value: Any, origin: str) -> Iterator[Finding]:
    """A finding when the key takes no such value; ``origin``: who set it."""
    try:
        OmegaConf.update(OmegaConf.structured(Config), key, value, force_add=True)
    except OmegaConfBaseException as problem:
        field = schema.fields().get(key)
        wanted = field.type if field else "a section"
        takes_list = wanted.startswith("list") and not isinstance(value, list | dict)
        why = "" if takes_list else f"{_first_line(problem)}; "
        yield Finding(
            id="MW003",
            keys=(key,),
            message=f"{key} = {value!r}: {why}it takes {'a list, ' if takes_list else ''}{wanted}",
            nearest=(f"{key}=[{value}]",) if takes_list else (),
            origin=(origin,),
        )


def unexplained(problem: Exception) -> Finding:
    """What Hydra said, as the last resort."""
    return Finding(id="MW006", message=f"the configuration cannot be composed: {str(problem).strip()}")


def _override_origin(word: str | None) -> str:
    return f"override {word}"


def _first_line(problem: Exception) -> str:
    return str(problem).strip().splitlines()[0]
