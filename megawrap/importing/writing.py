"""The written configuration: a folder with one YAML file, in place whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from megawrap.errors import ConfigError, Finding
from megawrap.importing.command import Unplaced

CONFIG_NAME = "imported"


def primary_in(folder: str) -> str:
    """The primary configuration in ``folder`` where none is named: that of an import, or ours."""
    return CONFIG_NAME if (Path(folder) / f"{CONFIG_NAME}.yaml").is_file() else "config"


def text(source: str, defaults: Mapping[str, str | None], tree: Mapping[str, Any], unplaced: Sequence[Unplaced]) -> str:
    """The YAML file: what it came from, what is not in it, the presets, and what differs from them."""
    choices = [{f"override /{group}": choice} for group, choice in defaults.items()]
    body = {"defaults": ["config", *choices, "_self_"], **tree}
    return "".join(_comments(source, unplaced)) + "\n" + OmegaConf.to_yaml(OmegaConf.create(body))


def _comments(source: str, unplaced: Sequence[Unplaced]) -> list[str]:
    lines = [f"Imported from {source}. Plan it: megawrap plan --config-dir FOLDER"]
    for one in unplaced:
        if one.needed:
            where = f" (line {one.line})" if one.line is not None else ""
            lines.append(f"Not placed{where}: {one.words}: {one.reason}")
    return [f"# {_in_a_line(line)}\n" for line in lines]


def _in_a_line(text: str) -> str:
    """Without line ends, nor the control characters that YAML refuses."""
    return "".join(sign if sign.isprintable() else "?" for sign in " ".join(text.split()))


def write(folder: Path, text: str, *, force: bool = False) -> None:
    """Write ``text`` as the only file of ``folder``.

    Raises:
        ConfigError: when the folder holds something already and ``force`` is not given, or cannot be written.
    """
    _refuse_taken(folder, force=force)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            fill(beside, text)
            beside.chmod(0o755)
            _into_place(beside, folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as problem:
        message = f"--output {folder} cannot be written: {problem.strerror} ({problem.filename or folder})"
        raise ConfigError(Finding(id="MW032", keys=("--output",), message=message)) from problem


def fill(folder: Path, text: str) -> None:
    """Write the file into a folder that exists."""
    with (folder / f"{CONFIG_NAME}.yaml").open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _refuse_taken(folder: Path, *, force: bool) -> None:
    is_taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    is_ours = folder.is_dir() and [entry.name for entry in folder.iterdir()] == [f"{CONFIG_NAME}.yaml"]
    if not is_taken or (force and is_ours):
        return
    holds = "is there already" if is_ours or not folder.is_dir() else "holds something else"
    nearest = ("--force",) if is_ours and not force else ("--output OTHER_FOLDER",)
    message = f"--output {folder}: the folder {holds}"
    raise ConfigError(Finding(id="MW031", keys=("--output",), message=message, nearest=nearest))


def _into_place(beside: Path, folder: Path) -> None:
    if folder.exists():
        # Ours, or empty. A rename cannot replace a folder that holds something, so the file is what is replaced.
        (beside / f"{CONFIG_NAME}.yaml").replace(folder / f"{CONFIG_NAME}.yaml")
    else:
        beside.rename(folder)
