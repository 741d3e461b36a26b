"""gigatoken, a quicker encoder, behind the same protocol as the libraries it stands in for."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Sequence
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

    def __init__(
        self,
        reference: Tokenizer,
        definition: str,
        before: Sequence[int] = (),
        after: Sequence[int] = (),
        *,
        has_tables: bool = True,
    ) -> None:
        self._library = _library()
        self._kept: Tokenizer | None = reference
        self._remake: Callable[[], Tokenizer] | None = None
        self._definition = definition
        self._around = (np.array(before, dtype=np.int32), np.array(after, dtype=np.int32))
        self._has_tables = has_tables
        self.vocab_size = reference.vocab_size
        self.eod = reference.eod
        self.fingerprint = reference.fingerprint
        self.special_tokens = reference.special_tokens
        self.engine = f"gigatoken {_version()}"
        self.cache_limit = CACHE_LIMIT
        self.recycle()

    @property
    def _reference(self) -> Tokenizer:
        if self._kept is None:
            assert self._remake is not None
            self._kept = self._remake()
        return self._kept

    def release(self, remake: Callable[[], Tokenizer]) -> None:
        """Let go of the reference, 100 MB with Llama 3, until a doubtful text or ``decode`` needs it again."""
        self._remake, self._kept = remake, None
        _give_back()

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
        slow = set(unicode_tables.doubtful(texts)) if self._has_tables else set()
        if not slow:
            return self._encode(list(texts))
        quick = [text for place, text in enumerate(texts) if place not in slow]
        parts = iter(_split(self._encode(quick)) if quick else [])
        others = iter(_split(self._reference.encode_batch([texts[place] for place in sorted(slow)])))
        return joined([next(others if place in slow else parts) for place in range(len(texts))])

    def _encode(self, texts: list[str]) -> Encoded:
        if self.cache_bytes > self.cache_limit:
            self.recycle()
        resident = _resident()
        # One by one: a batch takes more than twice as long at first, drops SentencePiece's cache, and comes as an
        # object of a library (awkward) that takes 60 MB. Nor does a single text start threads.
        rows = list(map(self._encoder.encode, texts))
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)) + sum(map(len, self._around))
        before, after = self._around
        if len(before) or len(after):
            rows = [part for row in rows for part in (before, row, after)]
        ids = np.concatenate(rows, dtype=np.int32, casting="unsafe")
        # What the process has grown by, but for the ids: an estimate that other threads can only raise.
        self.cache_bytes += max(0, _resident() - resident - 2 * ids.nbytes)
        return Encoded(ids, lengths)

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
        # SentencePiece knows no classes of Unicode: what it normalises stands in the model.
        return FastTokenizer(reference, _sentence_piece(reference.model), before, has_tables=False)
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


def _split(encoded: Encoded) -> list[Any]:
    return np.split(encoded.ids, np.cumsum(encoded.lengths)[:-1])


def _resident() -> int:
    """Bytes of memory that this process has in use."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 (called for every batch)
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _give_back() -> None:
    """Have the C library return to the system what has been freed, where it can: glibc keeps it otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _library() -> Any:
    try:
        import gigatoken
    except ModuleNotFoundError:
        raise Unsupported("gigatoken is not installed: pip install 'megawrap[tokenizers]'") from None
    return gigatoken


def _version() -> str:
    from importlib.metadata import version

    return version("gigatoken")
