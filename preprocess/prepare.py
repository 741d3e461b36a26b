"""Everything that can be found out about a run before it begins."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar

from megawrap.errors import ConfigError, Finding, MegawrapError, RunError
from megawrap.preprocess import space
from megawrap.preprocess.sampling import Sample, sample
from megawrap.preprocess.settings import Settings, TokenizerSettings
from megawrap.preprocess.source import Source, find
from megawrap.preprocess.staging import staging_folder, unwritable
from megawrap.preprocess.tokenizers import Tokenizer, choose
from megawrap.preprocess.tokenizers.fast import Definition
from megawrap.preprocess.tokenizers.protocol import dtype_for

_Argument = TypeVar("_Argument")
_Made = TypeVar("_Made")


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What a run needs to know of its tokenizer. The tokenizer itself, which takes much memory, is left to workers."""

    vocab_size: int
    eod: int | None
    fingerprint: str
    engine: str

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Facts:
        """Those of ``tokenizer``."""
        return cls(tokenizer.vocab_size, tokenizer.eod, tokenizer.fingerprint, tokenizer.engine)


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """Settings that have been found to be sound, with what was found out on the way."""

    settings: Settings
    sources: tuple[Source, ...]
    tokenizer: Facts
    recipe: TokenizerSettings | Definition
    """What each worker makes its encoder from."""
    why: str
    """Why it is this encoder, for people."""

    @property
    def total_bytes(self) -> int:
        """Bytes of the input's files to go through; 0 for standard input."""
        return sum(source.size - (source.start if source.seekable else 0) for source in self.sources)

    @property
    def dtype(self) -> str:
        """numpy name of the type that ids are stored in."""
        return dtype_for(self.tokenizer.vocab_size)

    @property
    def eod(self) -> int | None:
        """The id to put at the end of documents, if one is to be."""
        return self.tokenizer.eod if self.settings.append_eod else None


def prepare(settings: Settings) -> Prepared:
    """Check everything that can be checked without reading the whole input. Writes nothing.

    Raises:
        ConfigError: with everything that is wrong.
        RunError: the disk is too small.
    """
    problems = list(settings.problems())
    sources = _attempt(find, settings.input, problems)
    taken = sample(sources, settings.json_keys) if sources else Sample()
    choice = _attempt(lambda asked: choose(asked, taken.texts), settings.tokenizer, problems)
    problem = unwritable(settings.output_prefix)
    problems += [problem] if problem else []
    if choice and settings.append_eod and choice.tokenizer.eod is None:
        message = f"--append-eod: the vocabulary of {settings.tokenizer.model} has no id that ends a document"
        problems.append(Finding(id="MW614", message=message, keys=("--append-eod", "--tokenizer-model")))
    if problems:
        raise ConfigError(problems)
    assert sources is not None and choice is not None
    _check_space(settings, taken, choice.tokenizer)
    return Prepared(settings, sources, Facts.of(choice.tokenizer), choice.recipe, choice.reason)


def _check_space(settings: Settings, taken: Sample, tokenizer: Tokenizer) -> None:
    there = space.written(staging_folder(settings.output_prefix))
    problem = space.too_little(settings.output_prefix, space.needed(taken, tokenizer), there)
    if problem:
        raise RunError(problem)


def _attempt(make: Callable[[_Argument], _Made], argument: _Argument, problems: list[Finding]) -> _Made | None:
    try:
        return make(argument)
    except MegawrapError as failed:
        problems += failed.findings
        return None
