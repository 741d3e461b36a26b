"""The set of all keys, read off the section dataclasses."""

from __future__ import annotations

import dataclasses
import functools
import operator
import typing
from typing import Any

from megawrap.config.field import docstrings
from megawrap.config.sections.root import Config


@dataclasses.dataclass(frozen=True)
class Field:
    """One key: its type as written, its Megatron argument, its legal words and its default."""

    key: str
    section: type
    name: str
    type: str
    flag: str | None
    choices: tuple[str, ...]
    default: Any

    @property
    def open(self) -> bool:
        """Whether any key may stand below this one."""
        return self.type.startswith("dict")

    @property
    def doc(self) -> str:
        """What the option means."""
        return docstrings(self.section)[self.name]


@functools.cache
def fields() -> dict[str, Field]:
    """Key → field, in the order of the sections."""
    hints = typing.get_type_hints(Config)
    found: dict[str, Field] = {}
    for section in dataclasses.fields(Config):
        kind = hints[section.name]
        if not dataclasses.is_dataclass(kind):
            found[section.name] = _field(section.name, Config, section)
            continue
        assert isinstance(kind, type)
        for field in dataclasses.fields(kind):
            found[f"{section.name}.{field.name}"] = _field(f"{section.name}.{field.name}", kind, field)
    return found


def sections() -> dict[str, str]:
    """Section → its docstring."""
    hints = typing.get_type_hints(Config)
    return {
        section.name: str(hints[section.name].__doc__)
        for section in dataclasses.fields(Config)
        if dataclasses.is_dataclass(hints[section.name])
    }


def knows(key: str) -> bool:
    """Whether ``key`` (dotted) names a section, an option, or something below an option that is open."""
    known = fields()
    if key in known or key in sections():
        return True
    parts = key.split(".")
    return any(".".join(parts[:i]) in known and known[".".join(parts[:i])].open for i in range(1, len(parts)))


def get(config: Config, key: str) -> Any:
    """The value at a dotted key."""
    return _getter(key)(config)


_getter = functools.cache(operator.attrgetter)


def _field(key: str, section: type, field: dataclasses.Field[Any]) -> Field:
    default = field.default
    if not isinstance(field.default_factory, dataclasses._MISSING_TYPE):
        default = field.default_factory()
    metadata = field.metadata
    return Field(
        key=key,
        section=section,
        name=field.name,
        type=str(field.type),
        flag=metadata.get("flag"),
        choices=metadata.get("choices", ()),
        default=default,
    )
