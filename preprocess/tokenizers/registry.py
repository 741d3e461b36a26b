"""The tokenizer types that can be used here, and what each reads from its settings."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

from megawrap.errors import ConfigError, Finding, nearest
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import fast, gpt2, word_piece
from megawrap.preprocess.tokenizers.hugging_face import HuggingFaceTokenizer, load_deepseek
from megawrap.preprocess.tokenizers.null import NullTokenizer
from megawrap.preprocess.tokenizers.protocol import Tokenizer
from megawrap.preprocess.tokenizers.sentence_piece import SentencePieceTokenizer
from megawrap.preprocess.tokenizers.tik import TikTokenizer


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """How a type is made: from which settings it needs, and which others it may be given."""

    build: Callable[[TokenizerSettings], Tokenizer]
    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()


_SENTENCE_PIECE = Recipe(SentencePieceTokenizer.load, needs=("model",), takes=("vocab_size", "legacy"))
_TEMPLATE = ("vocab_size", "special_tokens", "include_special_tokens", "legacy")
_DEEPSEEK = Recipe(load_deepseek, needs=("model",), takes=("extra_vocab_size", "legacy"))
_BERT = Recipe(word_piece.load, needs=("vocab_file",), takes=_TEMPLATE)
_TIK = ("vocab_size", "special_tokens", "tiktoken_pattern", "tiktoken_num_special_tokens", "legacy")

# Source: Megatron-LM core_v0.19.0 megatron/core/tokenizers/utils/build_tokenizer.py; DeepSeek's are in ROCm's fork.
TOKENIZERS: dict[str, Recipe] = {
    # The three names stand for one class, which adds neither BOS nor EOS.
    "Llama2Tokenizer": _SENTENCE_PIECE,
    "SentencePieceTokenizer": _SENTENCE_PIECE,
    "GPTSentencePieceTokenizer": _SENTENCE_PIECE,
    "HuggingFaceTokenizer": Recipe(HuggingFaceTokenizer.load, needs=("model",), takes=_TEMPLATE),
    "GPT2BPETokenizer": Recipe(
        gpt2.load, needs=("vocab_file", "merge_file"), takes=("vocab_size", "special_tokens", "legacy")
    ),
    "TikTokenizer": Recipe(TikTokenizer.load, needs=("model",), takes=_TIK),
    "BertWordPieceLowerCase": _BERT,
    "BertWordPieceCase": _BERT,
    "DeepSeekV2Tokenizer": _DEEPSEEK,
    "DeepSeekV3Tokenizer": _DEEPSEEK,
    "NullTokenizer": Recipe(NullTokenizer.of, needs=("vocab_size",), takes=("legacy",)),
}

_FLAGS = {
    "model": "--tokenizer-model",
    "vocab_file": "--vocab-file",
    "merge_file": "--merge-file",
    "vocab_size": "--vocab-size",
    "extra_vocab_size": "--extra-vocab-size",
    "special_tokens": "--tokenizer-special-tokens",
    "tiktoken_pattern": "--tiktoken-pattern",
    "tiktoken_num_special_tokens": "--tiktoken-num-special-tokens",
    "include_special_tokens": "--tokenizer-hf-no-include-special-tokens",
    "legacy": "--legacy-tokenizer",
}


def build(settings: TokenizerSettings | fast.Definition) -> Tokenizer:
    """The tokenizer that ``settings`` describe, with the library that Megatron uses, or a quicker encoder from its
    definition.

    Raises:
        ConfigError: the type is unknown, a setting is missing or unused, or a file does not hold what it should.
    """
    if isinstance(settings, fast.Definition):
        return fast.FastTokenizer(settings, functools.partial(build, settings.settings))
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
        if value not in (None, ()) and name not in (*recipe.needs, *recipe.takes):
            written = flag if isinstance(value, bool) else f"{flag} {_words(value)}"
            message = f"{written}: {settings.type} does not read it; leave it out"
            yield Finding(id="MW613", message=message, keys=(flag, "--tokenizer-type"))


def _words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
