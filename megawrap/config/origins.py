"""Where each value was set: the YAML file and line, or the override on the command line."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.defaults_list import DefaultsList

DEFAULT = "default"


class Origins:
    """Key → where its value was set. Keys that nobody set have the default of their section."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def of(self, *keys: str) -> tuple[str, ...]:
        """The places of ``keys``, in that order."""
        return tuple(self._place(key) for key in keys)

    def _place(self, key: str) -> str:
        below = next((place for other, place in self._places.items() if other.startswith(key + ".")), DEFAULT)
        return self._places.get(key, below)


def folders(loader: ConfigLoaderImpl) -> tuple[Path, ...]:
    """The folders of Hydra's search path that hold files, in order; Hydra's own are left out."""
    found = []
    for element in loader.get_search_path().get_path():
        scheme, _, place = (element.path or "").partition("://")
        if scheme == "file":
            found.append(Path(place))
        elif scheme == "pkg" and element.provider != "hydra":
            found.append(Path(next(iter(importlib.import_module(place).__path__))))
    return tuple(found)


def trace(defaults: DefaultsList, search_path: Iterable[Path], typed: Mapping[str, str]) -> Origins:
    """Follow Hydra's own defaults list, later files over earlier ones, then the overrides. ``typed``: an override as
    Hydra got it → as the user typed it."""
    places: dict[str, str] = {}
    for file, package in sources(defaults, search_path):
        places.update((key, f"{_shown(file)}:{line}") for key, line in leaves_of(file, package))
    for override in defaults.config_overrides:
        word = override.input_line or ""
        places[override.key_or_group] = f"override {typed.get(word, word).lstrip('+')}"
    return Origins(places)


def sources(defaults: DefaultsList, search_path: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The files of a defaults list, each with the key that its content stands below."""
    search_path = tuple(search_path)
    for default in defaults.defaults:
        for file in [folder / f"{default.config_path}.yaml" for folder in search_path]:
            if default.config_path is not None and file.is_file():
                yield file, default.package or ""
                break


def _shown(file: Path) -> str:
    """``conf/parallel/tp2.yaml`` for our own files; others as they are."""
    own = Path(next(iter(importlib.import_module("megawrap.conf").__path__)))
    return f"conf/{file.relative_to(own)}" if file.is_relative_to(own) else str(file)


def leaves_of(file: Path, package: str) -> Iterator[tuple[str, int]]:
    """Key below ``package`` → its line, for every value in the file."""
    yield from _leaves(yaml.compose(file.read_text(encoding="utf-8"), Loader=_LOADER), package)


def _leaves(node: yaml.Node | None, prefix: str) -> Iterator[tuple[str, int]]:
    if not isinstance(node, yaml.MappingNode):
        return
    for name, value in node.value:
        key = f"{prefix}.{name.value}" if prefix else str(name.value)
        if isinstance(value, yaml.MappingNode) and value.value:
            yield from _leaves(value, key)
        else:
            yield key, name.start_mark.line + 1


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
