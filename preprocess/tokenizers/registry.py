"""The tokenizer types that can be used here, and what each reads from its settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from megawrap.errors import ConfigError, Finding, nearest
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers.null import NullTokenizer
from megawrap.preprocess.tokenizers.protocol import Tokenizer
from megawrap.preprocess.tokenizers.sentence_piece import SentencePieceTokenizer


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """How a type is made: from which settings it needs, and which others it may be given."""

    build: Callable[[TokenizerSettings], Tokenizer]
    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()


_SENTENCE_PIECE = Recipe(SentencePieceTokenizer.load, needs=("model",), takes=("vocab_size",))

TOKENIZERS: dict[str, Recipe] = {
    # The three names stand for one class, which adds neither BOS nor EOS.
    # Source: Megatron-LM core_v0.19.0 megatron/core/tokenizers/utils/build_tokenizer.py.
    "Llama2Tokenizer": _SENTENCE_PIECE,
    "SentencePieceTokenizer": _SENTENCE_PIECE,
    "GPTSentencePieceTokenizer": _SENTENCE_PIECE,
    "NullTokenizer": Recipe(NullTokenizer.of, needs=("vocab_size",)),
}

_FLAGS = {
    "model": "--tokenizer-model",
    "vocab_file": "--vocab-file",
    "merge_file": "--merge-file",
    "vocab_size": "--vocab-size",
}


def build(settings: TokenizerSettings) -> Tokenizer:
    """The tokenizer that ``settings`` describe.

    Raises:
        ConfigError: the type is unknown, a setting is missing or unused, or a file does not hold what it should.
    """
    recipe = TOKENIZERS.get(settings.type)
    if recipe is None:
        known = ", ".join(TOKENIZERS)
        message = f"--tokenizer-type {settings.type} is not among the types that can be used here: {known}"
        close = nearest(settings.type, TOKENIZERS)
        raise ConfigError(Finding(id="MW610", message=message, keys=("--tokenizer-type",), nearest=close))
    problems = [*_missing(settings, recipe), *_unused(settings, recipe)]
    if problems:
        raise ConfigError(problems)
    return recipe.build(settings)


def _missing(settings: TokenizerSettings, recipe: Recipe) -> Iterator[Finding]:
    for name in recipe.needs:
        if getattr(settings, name) is None:
            flag = _FLAGS[name]
            yield Finding(id="MW611", message=f"{settings.type} needs {flag}, which is not given", keys=(flag,))


def _unused(settings: TokenizerSettings, recipe: Recipe) -> Iterator[Finding]:
    for name, flag in _FLAGS.items():
        value = getattr(settings, name)
        if value is not None and name not in (*recipe.needs, *recipe.takes):
            message = f"{flag} {value}: {settings.type} does not read it; leave it out"
            yield Finding(id="MW613", message=message, keys=(flag, "--tokenizer-type"))
