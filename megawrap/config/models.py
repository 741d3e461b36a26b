"""The models that can be chosen, read fast enough to list them all."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from megawrap.config.compose import PACKAGE, compose
from megawrap.config.diagnose_files import unreadable
from megawrap.config.sections.model import Model
from megawrap.config.sections.root import Config
from megawrap.errors import ConfigError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FIELDS = {field.name for field in dataclasses.fields(Model)}


def with_model(name: str, config_dir: str | None = None) -> Config:
    """The configuration that ``model=NAME`` leads to, as far as it describes the model. A file that only has dimensions
    is read by itself, in a hundredth of the time that Hydra takes to compose a configuration around it; one that builds
    on others, or that sets Megatron's arguments, is composed.

    Raises:
        ConfigError: when there is no such model, or the file is wrong.
    """
    section = _dimensions(name, config_dir)
    if section is not None:
        try:
            return Config(model=OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Model), section)))  # type: ignore[arg-type]
        except OmegaConfBaseException:
            pass  # composing words it, with the file and the line
    return compose([f"model={name}"], config_dir=config_dir).config


def _dimensions(name: str, config_dir: str | None) -> dict[str, Any] | None:
    """What the file says of the model; ``None`` when that is not all, or depends on something else."""
    folders = [PACKAGE / "conf", *([Path(config_dir)] if config_dir else [])]  # in Hydra's order
    file = next((one for folder in folders if (one := folder / "model" / f"{name}.yaml").is_file()), None)
    if file and (wrong := list(unreadable(file))):
        raise ConfigError(wrong)
    text = file.read_text(encoding="utf-8") if file else ""
    try:
        content = yaml.load(text, _LOADER)
    except yaml.YAMLError:
        return None
    if not isinstance(content, dict) or "${" in text or {"defaults", "megatron"} & content.keys():
        return None
    section = content if content.keys() <= _FIELDS else content.get("model")
    return section if isinstance(section, dict) else None
