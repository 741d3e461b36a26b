"""From words on the command line to typed sections, through Hydra's compose API: no output folder, no logging."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_module
from hydra._internal import config_loader_impl
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.defaults_list import DefaultsList
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import megawrap
from megawrap.config import schema
from megawrap.config.diagnose import choices, diagnose, group_names, unexplained
from megawrap.config.diagnose_files import in_files, missing_choice, unreadable_in
from megawrap.config.origins import Origins, folders, trace
from megawrap.config.sections.root import Config
from megawrap.config.words import as_text
from megawrap.errors import ConfigError, Finding, nearest

PACKAGE = Path(megawrap.__file__).parent


@dataclasses.dataclass(frozen=True)
class Composed:
    """A configuration and how it came about."""

    config: Config
    tree: DictConfig
    overrides: tuple[str, ...]
    defaults: DefaultsList
    search_path: tuple[Path, ...]

    @functools.cached_property
    def origins(self) -> Origins:
        """Where each value was set. Reads the YAML files again, so only when somebody asks."""
        return trace(self.defaults, self.search_path, {_for_hydra(word): word for word in self.overrides})

    def yaml(self, **sections: Any) -> str:
        """The composed configuration with every interpolation resolved; ``sections`` stand in for those of their
        name."""
        container = OmegaConf.to_container(self.tree, resolve=True)
        assert isinstance(container, dict)
        return OmegaConf.to_yaml(OmegaConf.create({**container, **sections}))


def compose(overrides: Sequence[str], *, config_dir: str | None = None, config_name: str = "config") -> Composed:
    """Compose ``overrides`` (Hydra's grammar) over ``conf/`` and, when given, a folder of your own.

    Raises:
        ConfigError: with every unknown group, choice, key and ill-typed value at once.
    """
    with _hydra(config_dir) as loader, _defaults_lists() as seen:
        try:
            tree = hydra_compose(config_name, [*map(_for_hydra, overrides)])
            config = OmegaConf.to_object(tree)
        except (HydraException, OmegaConfBaseException, yaml.YAMLError, UnicodeDecodeError) as problem:
            found = diagnose(overrides, loader)
            if isinstance(problem, UnicodeDecodeError):
                found += unreadable_in(folders(loader))
            elif seen:
                found += in_files(seen[-1], folders(loader), group_names(loader))
            raise ConfigError(found or missing_choice(problem, loader) or unexplained(problem)) from problem
        search_path = folders(loader)
    if not isinstance(config, Config):
        raise ConfigError(_no_primary(config_name))
    composed = Composed(config, tree, tuple(overrides), seen[-1], search_path)
    _check_choices(composed)
    return composed


def _no_primary(name: str) -> Finding:
    message = f"{name}.yaml is no whole configuration: its defaults do not name `config`"
    return Finding(id="MW006", message=message, nearest=("defaults: [config, _self_]",))


@contextlib.contextmanager
def _defaults_lists() -> Iterator[list[DefaultsList]]:
    """The defaults lists that Hydra computes while composing. It throws them away, and computing one again would take
    as long as composing."""
    seen: list[DefaultsList] = []
    impl: Any = config_loader_impl
    compute = impl.create_defaults_list

    def recorded(*args: Any, **kwargs: Any) -> DefaultsList:
        seen.append(compute(*args, **kwargs))
        return seen[-1]

    impl.create_defaults_list = recorded
    try:
        yield seen
    finally:
        impl.create_defaults_list = compute


def choices_of(group: str, config_dir: str | None = None) -> list[str]:
    """Names of the choices in a group, yours in ``config_dir`` included."""
    with _hydra() as loader:
        names = set(choices(loader, group))
    own = own_folder(config_dir) / group if config_dir else None
    return sorted(names | {file.stem for file in own.glob("*.yaml")} if own else names)


def own_folder(config_dir: str) -> Path:
    """The folder that --config-dir names.

    Raises:
        ConfigError: when it is none. Hydra would go on without it, silently.
    """
    folder = Path(config_dir)
    if folder.is_dir():
        return folder.absolute()
    what = "is a file, and a folder is expected" if folder.exists() else "there is no such folder"
    raise ConfigError(Finding(id="MW024", keys=("--config-dir",), message=f"--config-dir {config_dir}: {what}"))


def groups() -> dict[str, list[str]]:
    """Group → its choices."""
    with _hydra() as loader:
        return {group: choices(loader, group) for group in group_names(loader)}


@functools.cache
def register() -> None:
    """Make the typed schema and the resolvers known to Hydra (idempotent)."""
    ConfigStore.instance().store(name="schema", node=Config)
    OmegaConf.register_new_resolver("more_than_one", lambda count: int(count) > 1, replace=True)
    OmegaConf.register_new_resolver("package_file", lambda name: str(PACKAGE / name), replace=True)


@contextlib.contextmanager
def _hydra(config_dir: str | None = None) -> Iterator[Any]:
    """Hydra's config loader over ``megawrap.conf`` and a folder of your own, whatever Hydra application may be running
    around us."""
    register()
    outer = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_module("megawrap.conf", version_base="1.3", job_name="megawrap"):
            loader: Any = GlobalHydra.instance().config_loader()
            if config_dir:
                # Searched after ours, as Hydra's --config-dir is. Not hydra.searchpath: Hydra looks for the primary
                # configuration before it reads that.
                path = loader.get_search_path()
                before_schema = SearchPathQuery(provider="schema")
                path.prepend("command-line", f"file://{own_folder(config_dir)}", before_schema)
                loader.repository = ConfigRepository(path)
            yield loader
    finally:
        if outer is not None:
            GlobalHydra.instance().initialize(outer)


def _for_hydra(override: str) -> str:
    """The override as Hydra takes it. It wants ``++`` before a key that is not there yet; below ``megatron.args`` and
    ``env`` every key is legal."""
    below_open = any(override.startswith(f"{key}.") for key, field in schema.fields().items() if field.open)
    return as_text(f"++{override}" if below_open else override)


def _check_choices(composed: Composed) -> None:
    findings = []
    for key, field in schema.fields().items():
        value = schema.get(composed.config, key)
        if field.choices and value is not None and value not in field.choices:
            findings.append(
                Finding(
                    id="MW004",
                    keys=(key,),
                    message=f"{key} = {value!r} is not one of: {', '.join(field.choices)}",
                    nearest=nearest(str(value), field.choices),
                    origin=composed.origins.of(key),
                )
            )
    if findings:
        raise ConfigError(findings)
