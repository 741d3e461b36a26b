"""The files of a Hugging Face tokenizer: beside each other in a folder, or fetched from the hub by name."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import orjson

from megawrap.errors import ConfigError
from megawrap.preprocess.tokenizers import files

_MODEL = "--tokenizer-model"
_TOKENIZER = "tokenizer.json"
_CONFIG = "tokenizer_config.json"
_NAMES = "special_tokens_map.json"
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """tokenizer.json, and what the files beside it say: names of special tokens, BOS or not, ..."""

    path: Path
    json: bytes
    config: dict[str, Any]


def content(token: Any) -> str:
    """The text of a token, which a configuration writes as a word or as an object."""
    return str(token["content"] if isinstance(token, dict) else token)


def find(model: Path) -> Found:
    """The files of ``model``: a tokenizer.json, a folder with one, or a name on the hub.

    Raises:
        ConfigError: there is none, or it cannot be fetched.
    """
    if model.is_dir():
        return _in_folder(model)
    if model.is_file():
        if model.suffix == ".model":
            raise files.refused(f"{model} is a SentencePiece model or a list of ranks, and {_TOKENIZER} is needed "
                                "(Llama2Tokenizer reads SentencePiece models)", _MODEL)  # fmt: skip
        return Found(model, files.read(model, _MODEL), _config(model.parent))
    if _HUB_NAME.fullmatch(str(model)):
        return _in_folder(_fetched(str(model)))
    raise files.refused(f"{model}: there is no such file or folder", _MODEL)


def _in_folder(folder: Path) -> Found:
    file = folder / _TOKENIZER
    if not file.is_file():
        there = ", ".join(
            sorted(path.name for path in folder.iterdir() if "token" in path.name or "vocab" in path.name)
        )
        hint = f"; it has {there}" if there else ""
        if (folder / "tokenizer.model").is_file():
            hint += (
                " (Llama2Tokenizer reads a SentencePiece tokenizer.model itself; its conversion by transformers "
                "gives other ids for runs of spaces)"
            )
        raise files.refused(f"{folder} has no {_TOKENIZER}{hint}", _MODEL)
    return Found(file, files.read(file, _MODEL), _config(folder))


def _config(folder: Path) -> dict[str, Any]:
    """The configuration; the older file of special tokens counts where both name one, as in transformers."""
    merged: dict[str, Any] = {}
    for name in (_CONFIG, _NAMES):
        file = folder / name
        if not file.is_file():
            continue
        try:
            value = orjson.loads(files.read(file, _MODEL))
        except orjson.JSONDecodeError as error:
            raise files.refused(f"{file} is no JSON: {error}", _MODEL) from None
        if not isinstance(value, dict):
            raise files.refused(f"{file} is no JSON object", _MODEL)
        if name == _CONFIG or "added_tokens_decoder" not in merged:
            merged |= value
    return merged


def _fetched(name: str) -> Path:
    """The folder of ``name`` in the hub's cache, filled from the network if it has to be."""
    try:
        return _snapshot(name)
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 (every failure of the network, the hub and its login comes here)
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        command = f"hf download {name} --include '*token*' --local-dir {name.split('/')[1]}"
        message = (
            f"{name} is no file or folder here, and cannot be fetched from the hub ({reason}). Where there is a "
            f"network: {command} (huggingface-cli download ... before huggingface_hub 1.0), then set "
            f"--tokenizer-model to the folder"
        )
        raise files.refused(message, _MODEL) from None


def _snapshot(name: str) -> Path:
    try:
        import huggingface_hub
    except ModuleNotFoundError:
        raise files.missing_library("huggingface_hub", f"{name} is no file here, and the hub needs") from None
    patterns = [_TOKENIZER, _CONFIG, _NAMES]
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns, local_files_only=True))
    except huggingface_hub.errors.LocalEntryNotFoundError:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns, etag_timeout=10))
