"""TikTokenizer: ranks in a JSON list, behind ids that are kept for special tokens."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from megawrap.errors import ConfigError, Finding
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import files
from megawrap.preprocess.tokenizers.protocol import Encoded, joined

# How text is cut before the merges. Source: Megatron-LM core_v0.19.0
# megatron/core/tokenizers/text/libraries/tiktoken_tokenizer.py.
PATTERNS = {
    "v1": r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "v2": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
_SPECIAL = ("<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>")
_LEGACY_SPECIAL = _SPECIAL[:3]
_VOCAB_SIZE = 2**17
_KEPT = 1000
_MODEL = "--tokenizer-model"
_PATTERN = "--tiktoken-pattern"
_TOKENS = "--tokenizer-special-tokens"


class TikTokenizer:
    """Encodes with tiktoken. Special tokens in a text are one id each, but in the legacy tokenizer; </s> ends a
    document.

    Source: ``TikTokenTokenizer`` in Megatron-LM core_v0.19.0 megatron/core/tokenizers/text/libraries/
    tiktoken_tokenizer.py; legacy: ``CustomTikTokenizer`` in core_v0.14.0 megatron/training/tokenizer/tokenizer.py.
    """

    def __init__(self, ranks: dict[bytes, int], pattern: str, special: dict[str, int], *, legacy: bool = False) -> None:
        library = _library()
        self._encoding = library.Encoding("megawrap", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
        self._legacy = legacy
        self.special_tokens: Sequence[str] = tuple(special)
        self.vocab_size = len(ranks) + len(special)
        self.eod: int | None = special["</s>"]
        self.fingerprint = files.fingerprint(tuple(ranks), pattern, tuple(special), legacy)
        self.engine = f"tiktoken {library.__version__}"

    @classmethod
    def load(cls, settings: TokenizerSettings) -> TikTokenizer:
        """The tokenizer in ``settings.model``.

        Raises:
            ConfigError: the file does not hold ranks, or the special tokens do not fit.
        """
        assert settings.model is not None
        legacy = bool(settings.legacy)
        pattern = PATTERNS.get(settings.tiktoken_pattern or "v2")
        if pattern is None:
            raise _wrong(f"{_PATTERN} {settings.tiktoken_pattern}: it is v1 or v2", _PATTERN, nearest=tuple(PATTERNS))
        special = _special(settings, _LEGACY_SPECIAL if legacy else _SPECIAL)
        size = settings.vocab_size or _VOCAB_SIZE
        ranks = _ranks(settings.model, files.read(settings.model, _MODEL), len(special), size)
        return cls(ranks, pattern, special, legacy=legacy)

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """See ``Tokenizer.encode_batch``; no text is refused."""
        encoding = self._encoding
        if self._legacy:
            return joined([encoding.encode_ordinary(text) for text in texts])
        return joined([encoding.encode(text, allowed_special="all") for text in texts])

    def decode(self, ids: Sequence[int]) -> str:
        """See ``Tokenizer.decode``."""
        return str(self._encoding.decode([int(id) for id in ids]))

    def piece(self, id: int) -> str:
        """See ``Tokenizer.piece``."""
        return str(self._encoding.decode_single_token_bytes(int(id)).decode(errors="backslashreplace"))


def _special(settings: TokenizerSettings, needed: Sequence[str]) -> dict[str, int]:
    """Special tokens by their ids: those that are given, then fillers up to the number that is kept."""
    given = settings.special_tokens or tuple(needed)
    kept = _KEPT if settings.tiktoken_num_special_tokens is None else settings.tiktoken_num_special_tokens
    missing = [token for token in needed if token not in given]
    if missing:
        raise _wrong(f"{_TOKENS} lacks {' '.join(missing)}, which TikTokenizer needs", _TOKENS)
    tokens = [*given, *(f"<SPECIAL_{id}>" for id in range(len(given), kept))]
    twice = {token for token in tokens if tokens.count(token) > 1} if len(set(tokens)) < len(tokens) else set()
    if twice:
        raise _wrong(f"{_TOKENS} has {' '.join(sorted(twice))} more than once", _TOKENS)
    if len(given) > kept:
        flag = "--tiktoken-num-special-tokens"
        message = f"{flag} {kept}: {len(given)} special tokens are given"
        raise _wrong(message, flag, _TOKENS, nearest=(str(len(given)),))
    return {token: id for id, token in enumerate(tokens)}


def _ranks(path: Path, data: bytes, special: int, size: int) -> dict[bytes, int]:
    """The first ``size - special`` ranks of a file, as ids."""
    form = "a JSON list of objects with rank, token_bytes (base64) and token_str"
    try:
        rows = orjson.loads(data)
        is_tekken = isinstance(rows, dict) and isinstance(rows.get("vocab"), list)
        rows = [] if is_tekken else rows
        tokens = [base64.b64decode(row["token_bytes"], validate=True) for row in rows[: max(0, size - special)]]
        in_order = all(row["rank"] == rank for rank, row in enumerate(rows[: len(tokens)]))
    except (ValueError, TypeError, KeyError, binascii.Error):
        raise files.refused(f"{path} is not {form}, which TikTokenizer reads", _MODEL) from None
    if is_tekken:
        hint = "it is Mistral's tekken format: its list `vocab`, in a file of its own, is what is needed"
        raise files.refused(f"{path} is not {form}; {hint}", _MODEL)
    if not in_order or tokens[:256] != [bytes([byte]) for byte in range(256)] or len(set(tokens)) < len(tokens):
        raise files.refused(f"{path}: ranks must go up from 0, the 256 bytes first and no token twice", _MODEL)
    if special + len(tokens) != size:
        actual = special + len(tokens)
        message = f"--vocab-size {size}: {path} has {len(tokens)} tokens, and {special} special ones make {actual}"
        raise _wrong(message, "--vocab-size", _MODEL, nearest=(str(actual),))
    return {token: rank + special for rank, token in enumerate(tokens)}


def _wrong(message: str, *flags: str, nearest: tuple[str, ...] = ()) -> ConfigError:
    return ConfigError(Finding(id="MW613", message=message, keys=flags, nearest=nearest))


def _library() -> Any:
    try:
        import tiktoken
    except ModuleNotFoundError:
        raise files.missing_library("tiktoken", "TikTokenizer needs") from None
    return tiktoken
