"""The words of `megawrap data`: prefixes, overrides, numbers."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from megawrap.cli.verbs import common
from megawrap.cli.verbs.verb import Invocation
from megawrap.errors import ConfigError, Finding

if TYPE_CHECKING:
    from megawrap.config.sections.root import Config
    from megawrap.preprocess.tokenizers import Tokenizer
    from megawrap.preprocess.tools.stats import Run

_Number = TypeVar("_Number", float, Fraction)
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "B": 10**9, "T": 10**12}


def misused(invocation: Invocation, message: str) -> ConfigError:
    """The command is wrong."""
    return ConfigError(Finding(id="MW008", message=f"megawrap {invocation.verb}: {message}"))


def datasets(
    invocation: Invocation, *, least: int = 1, most: int | None = None, only: bool = False
) -> tuple[list[str], list[str]]:
    """The words that are prefixes, and those that are overrides: they contain ``=``, and no file is called so.

    With ``only`` there are no overrides.

    Raises:
        ConfigError: there are too few or too many prefixes.
    """
    from megawrap.preprocess.tools.names import prefixes

    words = invocation.options.words
    overrides = [word for word in words if not only and "=" in word and not Path(f"{word}.idx").exists()]
    found = prefixes([word for word in words if word not in overrides])
    if len(found) < least:
        raise misused(invocation, "name a dataset: its path without .bin and .idx")
    if most is not None and len(found) > most:
        raise misused(invocation, f"it takes {most} dataset, and there are {len(found)}: {' '.join(found)}")
    return found, overrides


def composed(invocation: Invocation, overrides: Sequence[str]) -> Config:
    """The configuration of the overrides alone."""
    options = argparse.Namespace(**{**vars(invocation.options), "words": list(overrides)})
    return common.composed(options).config


def tokenizer(invocation: Invocation, overrides: Sequence[str]) -> Tokenizer | None:
    """The tokenizer that overrides name; None without any.

    Raises:
        ConfigError: it cannot be made.
    """
    if not overrides:
        return None
    from megawrap.cli.verbs.tokenizer_words import settings_of
    from megawrap.preprocess.tokenizers import build

    section = composed(invocation, overrides).tokenizer
    if section.type is None:
        raise misused(invocation, f"{' '.join(overrides)} chooses no tokenizer: tokenizer=NAME does")
    return build(settings_of(section))


def run_of(invocation: Invocation, config: Config | None) -> Run | None:
    """The run that is asked about: so many tokens, or what ``config`` trains on; None if none is."""
    from megawrap.preprocess.tools.stats import Run

    if invocation.options.tokens:
        return Run(_count(invocation, invocation.options.tokens))
    train = config.train if config is not None else None
    if train is None or train.seq_length is None:
        return None
    samples = train.train_samples or (train.train_iters or 0) * (train.global_batch_size or 0)
    return Run(samples * train.seq_length, train.seq_length) if samples else None


def sources(invocation: Invocation, config: Config) -> tuple[list[str], list[float]]:
    """Datasets and weights of a run's configuration.

    Raises:
        ConfigError: a weight is no number.
    """
    data = config.data
    if data.source == "prefix" and data.prefix:
        return [data.prefix], []
    if data.source == "blend":
        return list(data.blend[1::2]), numbers(invocation, "data.blend", ",".join(data.blend[::2]), float)
    return [], []


def numbers(invocation: Invocation, option: str, text: str, kind: Callable[[str], _Number]) -> list[_Number]:
    """``98,1,1`` as numbers of a kind.

    Raises:
        ConfigError: something else is written.
    """
    try:
        found = [kind(word) for word in text.split(",")]
        if not all(map(math.isfinite, found)):
            raise ValueError(text)
        return found
    except (ValueError, ZeroDivisionError, OverflowError):
        raise misused(invocation, f"{option} {text}: numbers with commas between them, such as 98,1,1") from None


def given(invocation: Invocation, value: str | None, message: str) -> str:
    """An option that has to be given.

    Raises:
        ConfigError: it is not.
    """
    if not value:
        raise misused(invocation, message)
    return value


def _count(invocation: Invocation, text: str) -> int:
    """``1.5T`` → 1500000000000."""
    found = re.fullmatch(r"(\d+\.?\d*(?:e\d+)?)([kMGBT]?)", text.replace(",", "").replace("_", ""))
    if found is None:
        raise misused(invocation, f"--tokens {text}: a number such as 300B, 1.5T or 2e12")
    return round(float(found[1]) * _UNITS[found[2]])
