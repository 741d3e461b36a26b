"""gigatoken, a quicker encoder, behind the same protocol as the libraries it stands in for."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

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


class FastTokenizer:
    """Gives the ids of ``reference`` sooner. Texts with doubtful code points are encoded by ``reference`` itself.

    Not to be trusted untried: ``choose`` compares first.
    """

    def __init__(self, reference: Tokenizer, definition: str, before: Sequence[int], after: Sequence[int]) -> None:
        self._library = _library()
        self._reference = reference
        self._definition = definition
        self._around = (list(before), list(after))
        self.vocab_size = reference.vocab_size
        self.eod = reference.eod
        self.fingerprint = reference.fingerprint
        self.special_tokens = reference.special_tokens
        self.engine = f"gigatoken {_version()}"
        self.cache_limit = CACHE_LIMIT
        self.recycle()

    def recycle(self) -> None:
        """Drop the cache of words."""
        try:
            self._encoder = self._library.Tokenizer.from_json(self._definition)
        except Exception as error:  # noqa: BLE001 (the library raises what its Rust code panics with, too)
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise Unsupported(f"gigatoken cannot read this tokenizer: {reason}") from None
        self.cache_bytes = 0

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """See ``Tokenizer.encode_batch``; no text is refused."""
        if not texts:
            return joined([])
        slow = set(unicode_tables.doubtful(texts))
        if not slow:
            return self._encode(list(texts))
        quick = [text for place, text in enumerate(texts) if place not in slow]
        parts = iter(_split(self._encode(quick)) if quick else [])
        others = iter(_split(self._reference.encode_batch([texts[place] for place in sorted(slow)])))
        return joined([next(others if place in slow else parts) for place in range(len(texts))])

    def _encode(self, texts: list[str]) -> Encoded:
        if self.cache_bytes > self.cache_limit:
            self.recycle()
        before = _resident()
        # On this thread: the workers are as many processes as there are to be.
        rows = self._encoder.encode_batch(texts, parallel=False)
        content, lengths = _arrays(rows)
        # What the process has grown by, but for the ids: an estimate that other threads can only raise.
        self.cache_bytes += max(0, _resident() - before - content.nbytes)
        return _wrapped(content.astype(np.int32, copy=False), lengths, *self._around)

    def decode(self, ids: Sequence[int]) -> str:
        """See ``Tokenizer.decode``."""
        return self._reference.decode(ids)

    def piece(self, id: int) -> str:
        """See ``Tokenizer.piece``."""
        return self._reference.piece(id)


def wrap(reference: Tokenizer) -> FastTokenizer:
    """A quicker encoder with the ids of ``reference``.

    Raises:
        Unsupported: there is none.
    """
    if isinstance(reference, HuggingFaceTokenizer):
        kind = type(reference.library_tokenizer.model).__name__
        if kind != "BPE":
            raise Unsupported(f"gigatoken knows BPE, and this is {kind}")
        definition = reference.library_tokenizer.to_str()
        return FastTokenizer(reference, definition, reference.before, reference.after)
    if isinstance(reference, SentencePieceTokenizer) and not isinstance(reference, LegacySentencePieceTokenizer):
        before = [reference.bos] if isinstance(reference, LegacyLlama2Tokenizer) else []
        return FastTokenizer(reference, _sentence_piece(reference.model), before, [])
    raise Unsupported(f"there is no quicker encoder than {reference.engine} for this type")


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


def _arrays(rows: Any) -> tuple[Any, Any]:
    """All ids of an awkward array, and the length of each of its rows."""
    layout = rows.layout.to_ListOffsetArray64(True)
    offsets = np.asarray(layout.offsets.data)
    return np.asarray(layout.content.data)[offsets[0] : offsets[-1]], np.diff(offsets).astype(np.int64)


def _wrapped(ids: Any, lengths: Any, before: list[int], after: list[int]) -> Encoded:
    """The same with ids before and behind every text."""
    if before or after:
        ends = np.cumsum(lengths)
        places = np.concatenate([np.repeat(ends - lengths, len(before)), np.repeat(ends, len(after))])
        values = np.concatenate([np.tile(before, len(lengths)), np.tile(after, len(lengths))])
        # Insertions at one place keep their order; what ends a text has to come before what begins the next.
        rank = np.concatenate([np.repeat(2 * np.arange(len(lengths)), len(before)),
                               np.repeat(2 * np.arange(len(lengths)) + 1, len(after))])  # fmt: skip
        order = np.argsort(rank, kind="stable")
        ids = np.insert(ids, places[order], values[order])
        lengths = lengths + len(before) + len(after)
    return Encoded(ids, lengths)


def _split(encoded: Encoded) -> list[Any]:
    return np.split(encoded.ids, np.cumsum(encoded.lengths)[:-1])


def _resident() -> int:
    """Bytes of memory that this process has in use."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 (called for every batch)
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _library() -> Any:
    try:
        import gigatoken
    except ModuleNotFoundError:
        raise Unsupported("gigatoken is not installed: pip install 'megawrap[tokenizers]'") from None
    return gigatoken


def _version() -> str:
    from importlib.metadata import version

    return version("gigatoken")
