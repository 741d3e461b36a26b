"""Files that tokenizers are made of: read them, and say plainly when they are not what they should be."""

from __future__ import annotations

import hashlib
from pathlib import Path

from megawrap.errors import ConfigError, Finding


def read(path: Path, flag: str) -> bytes:
    """The content of a file that ``flag`` names.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise refused(f"{path}: there is no such file", flag) from None
    except OSError as error:
        raise refused(f"{path} cannot be read: {error.strerror}", flag) from None


def refused(message: str, *flags: str) -> ConfigError:
    """A file, or what it was given with, that makes no tokenizer."""
    return ConfigError(Finding(id="MW612", message=message, keys=flags))


def missing_library(name: str, what: str) -> ConfigError:
    """A package that is not installed."""
    message = f"{what} the package {name}: pip install {name}"
    return ConfigError(Finding(id="MW615", message=message, keys=("--tokenizer-type",)))


def check_size(given: int | None, actual: int, path: Path, unit: str, flag: str = "--tokenizer-model") -> None:
    """Nothing, when no size is given or it is that of the file.

    Raises:
        ConfigError: they differ.
    """
    if given not in (None, actual):
        message = f"--vocab-size {given}: {path} has {actual} {unit}"
        raise ConfigError(Finding(id="MW613", message=message, keys=("--vocab-size", flag), nearest=(str(actual),)))


def fingerprint(*parts: object) -> str:
    """SHA-256, in hexadecimal, of some bytes and of whatever else the ids depend on."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()
