"""Mistakes in YAML files of the user's own, each with its file and line."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra._internal.defaults_list import DefaultsList
from hydra.errors import MissingConfigException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from megawrap.config import schema
from megawrap.config.diagnose import choices, unknown_key, wrong_type
from megawrap.config.origins import leaves_of, sources
from megawrap.errors import Finding, nearest


def in_files(defaults: DefaultsList, search_path: Iterable[Path], groups: Sequence[str]) -> list[Finding]:
    """Findings for the keys and values in the files of a defaults list."""
    return [finding for file, package in sources(defaults, search_path) for finding in _in_file(file, package, groups)]


def unreadable_in(search_path: Iterable[Path]) -> list[Finding]:
    """Findings for all files of the search path that are no text: Hydra does not say which it was reading."""
    files = [file for folder in search_path for file in sorted([*folder.glob("*.yaml"), *folder.glob("*/*.yaml")])]
    return [finding for file in files for finding in unreadable(file)]


def unreadable(file: Path) -> Iterator[Finding]:
    """A finding when ``file`` is not the UTF-8 that YAML is."""
    content = file.read_bytes()
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        byte = content[problem.start]
        message = f"{file}:{line}: the byte 0x{byte:02x} is not UTF-8, which a YAML file has to be"
        yield Finding(id="MW006", message=message, nearest=(f"iconv -f latin1 -t utf-8 {file}",))


def missing_choice(problem: Exception, loader: Any) -> list[Finding]:
    """A finding when a defaults list names a choice that is not there."""
    inside = re.match(r"In '([^']+)'", str(problem))
    if not isinstance(problem, MissingConfigException) or not problem.missing_cfg_file or not inside:
        return []
    group, _, name = problem.missing_cfg_file.rpartition("/")
    known = choices(loader, group)
    message = f"{inside[1]}.yaml: its defaults name {problem.missing_cfg_file}, which does not exist"
    if known:
        message += f". There are: {', '.join(known)}"
    return [Finding(id="MW001", keys=(group,) if group else (), message=message, nearest=nearest(name, known))]


def _in_file(file: Path, package: str, groups: Sequence[str]) -> Iterator[Finding]:
    try:
        content = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
        leaves = list(leaves_of(file, ""))
    except (OmegaConfBaseException, yaml.YAMLError):
        return  # Hydra's own words have the line
    for inner, line in leaves:
        key = f"{package}.{inner}" if package else inner
        origin = f"{file}:{line}"
        if inner.split(".")[0] in ("defaults", "hydra"):
            continue
        if not schema.knows(key):
            yield _as_in_file(unknown_key(key, groups, origin), package)
            continue
        value = functools.reduce(_below, inner.split("."), content)
        if value is not None and "${" not in str(value):
            yield from wrong_type(key, value, origin)


def _below(content: Any, name: str) -> Any:
    return content.get(name) if isinstance(content, dict) else None


def _as_in_file(finding: Finding, package: str) -> Finding:
    """The nearest keys without the prefix that the file has by its place."""
    prefix = f"{package}."
    return dataclasses.replace(finding, nearest=tuple(key.removeprefix(prefix) for key in finding.nearest))
