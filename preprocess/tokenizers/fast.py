"""gigatoken, a quicker encoder, behind the same protocol as the libraries it stands in for."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from megawrap.preprocess.memory import resident
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import unicode_tables
from megawrap.preprocess.tokenizers.hugging_face import HuggingFaceTokenizer
from megawrap.preprocess.tokenizers.protocol import Encoded, Tokenizer, joined
from megawrap.preprocess.tokenizers.sentence_piece import (
    LegacyLlama2Tokenizer,
    LegacySentencePieceTokenizer,
    SentencePieceTokenizer,
)

CACHE_LIMIT = 150 << 20
"""Bytes that gigatoken's cache of words may take before it is dropped; 0.10 itself never drops any of it."""


class Unsupported(Exception):
    """Why a tokenizer has no quicker encoder; a sentence for people."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """All that a quicker encoder needs to know of its reference, which takes longer to make and more memory (0.4 s and
    100 MB with Llama 3)."""

    settings: TokenizerSettings
    """Those of the reference."""
    text: str
    """The tokenizer.json that gigatoken reads."""
    before: tuple[int, ...] = ()
    """Ids in front of every text."""
    after: tuple[int, ...] = ()
    """Ids behind every text."""
    has_tables: bool = True
    """Whether text is cut by classes of Unicode, of which the two may know different versions."""
    vocab_size: int
    eod: int | None
    fingerprint: str
    special_tokens: tuple[str, ...]


class FastTokenizer:
    """Gives the ids of a reference sooner. Texts with doubtful code points are encoded by the reference itself, which
    is made when the first of them comes.

    Not to be trusted untried: ``choose`` compares first.
    """

    def __init__(self, definition: Definition, reference: Callable[[], Tokenizer]) -> None:
        self._library = _library()
        self._make_reference = reference
        self.definition = definition
        self._around = (np.array(definition.before, dtype=np.int32), np.array(definition.after, dtype=np.int32))
        self.vocab_size = definition.vocab_size
        self.eod = definition.eod
        self.fingerprint = definition.fingerprint
        self.special_tokens: Sequence[str] = definition.special_tokens
        self.engine = f"gigatoken {_version()}"
        self.cache_limit = CACHE_LIMIT
        self.recycle()

    @functools.cached_property
    def _reference(self) -> Tokenizer:
        return self._make_reference()

    def recycle(self) -> None:
        """Drop the cache of words."""
        try:
            self._encoder = self._library.Tokenizer.from_json(self.definition.text)
        except Exception as error:  # noqa: BLE001 (the library raises what its Rust code panics with, too)
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise Unsupported(f"gigatoken cannot read this tokenizer: {reason}") from None
        self.cache_bytes = 0

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """See ``Tokenizer.encode_batch``; no text is refused."""
        if not texts:
            return joined([])
        slow = set(unicode_tables.doubtful(texts)) if self.definition.has_tables else set()
        if not slow:
            return self._encode(list(texts))
        quick = [text for place, text in enumerate(texts) if place not in slow]
        parts = iter(_split(self._encode(quick)) if quick else [])
        others = iter(_split(self._reference.encode_batch([texts[place] for place in sorted(slow)])))
        return joined([next(others if place in slow else parts) for place in range(len(texts))])

    def _encode(self, texts: list[str]) -> Encoded:
        if self.cache_bytes > self.cache_limit:
            self.recycle()
        known = resident()
        # One by one: a batch takes more than twice as long at first, drops SentencePiece's cache, and comes as an
        # object of a library (awkward) that takes 60 MB. Nor does a single text start threads.
        rows = list(map(self._encoder.encode, texts))
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)) + sum(map(len, self._around))
        before, after = self._around
        if len(before) or len(after):
            rows = [part for row in rows for part in (before, row, after)]
        ids = np.concatenate(rows, dtype=np.int32, casting="unsafe")
        # What the process has grown by, but for the ids: an estimate that other threads can only raise.
        self.cache_bytes += max(0, resident() - known - 2 * ids.nbytes)
        return Encoded(ids, lengths)

    def decode(self, ids: Sequence[int]) -> str:
        """See ``Tokenizer.decode``."""
        return self._reference.decode(ids)

    def piece(self, id: int) -> str:
        """See ``Tokenizer.piece``."""
        return self._reference.piece(id)


def define(settings: TokenizerSettings, reference: Tokenizer) -> Definition:
    """What a quicker encoder with the ids of ``reference``, which ``settings`` made, is to be.

    Raises:
        Unsupported: there is none.
    """
    if isinstance(reference, HuggingFaceTokenizer):
        kind = type(reference.library_tokenizer.model).__name__
        if kind != "BPE":
            raise Unsupported(f"gigatoken knows BPE, and this is {kind}")
        text = reference.library_tokenizer.to_str()
        return _definition(settings, reference, text, before=tuple(reference.before), after=tuple(reference.after))
    if isinstance(reference, SentencePieceTokenizer) and not isinstance(reference, LegacySentencePieceTokenizer):
        before = (reference.bos,) if isinstance(reference, LegacyLlama2Tokenizer) else ()
        # SentencePiece knows no classes of Unicode: what it normalises stands in the model.
        text = _sentence_piece(reference.model)
        return _definition(settings, reference, text, before=before, has_tables=False)
    raise Unsupported(f"there is no quicker encoder than {reference.engine} for this type")


def _definition(settings: TokenizerSettings, reference: Tokenizer, text: str, **more: Any) -> Definition:
    return Definition(
        settings=settings,
        text=text,
        vocab_size=reference.vocab_size,
        eod=reference.eod,
        fingerprint=reference.fingerprint,
        special_tokens=tuple(reference.special_tokens),
        **more,
    )


def _sentence_piece(model: bytes) -> str:
    """A SentencePiece model as gigatoken reads it, without its control pieces: <s> in a text is no BOS."""
    _library()
    from gigatoken._load.sentencepiece import sentencepiece_to_tokenizer_json

    try:
        definition = json.loads(sentencepiece_to_tokenizer_json(model))
    except ValueError as error:
        raise Unsupported(f"gigatoken cannot read this model: {error}") from None
    definition["added_tokens"] = [token for token in definition["added_tokens"] if not token["special"]]
    return json.dumps(definition)


def _split(encoded: Encoded) -> list[Any]:
    return np.split(encoded.ids, np.cumsum(encoded.lengths)[:-1])


def _library() -> Any:
    try:
        import gigatoken
    except ModuleNotFoundError:
        raise Unsupported("gigatoken is not installed: pip install 'megawrap[tokenizers]'") from None
    return gigatoken


def _version() -> str:
    from importlib.metadata import version

    return version("gigatoken")
