"""Ids written as numbers: Megatron's NullTokenizer, for tests and for data that is already tokenized."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from megawrap.errors import ConfigError, Finding
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers.protocol import BadText, Encoded, joined


class NullTokenizer:
    """A text is ids in decimal with one space between two; the last id of the vocabulary ends a document.

    Megatron stores ids beyond the vocabulary as they come; here they are refused, since no model could look them up.

    Source: Megatron-LM core_v0.19.0 megatron/core/tokenizers/text/libraries/null_tokenizer.py. Up to release 0.16
    the end-of-document id was one more, ``vocab_size`` itself.
    """

    def __init__(self, vocab_size: int, *, legacy: bool = False) -> None:
        self.vocab_size = vocab_size + legacy
        self.eod: int | None = self.vocab_size - 1
        self.fingerprint = hashlib.sha256(b"NullTokenizer %d" % self.vocab_size).hexdigest()
        self.engine = "megawrap"
        self.special_tokens: Sequence[str] = ()

    @classmethod
    def of(cls, settings: TokenizerSettings) -> NullTokenizer:
        """The tokenizer of ``settings.vocab_size`` ids.

        Raises:
            ConfigError: the size is not a number of ids that a file can hold.
        """
        size = settings.vocab_size
        assert size is not None
        if not 1 <= size <= 2**31:
            message = f"--vocab-size {size}: a vocabulary has at least 1 and at most 2147483648 ids"
            raise ConfigError(Finding(id="MW613", message=message, keys=("--vocab-size",)))
        return cls(size, legacy=bool(settings.legacy))

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """See ``Tokenizer.encode_batch``."""
        return joined([self._encode(index, text) for index, text in enumerate(texts)])

    def decode(self, ids: Sequence[int]) -> str:
        """See ``Tokenizer.decode``."""
        return " ".join(map(str, ids))

    def piece(self, id: int) -> str:
        """See ``Tokenizer.piece``."""
        return str(id)

    def _encode(self, index: int, text: str) -> list[int]:
        ids = []
        for word in text.split(" "):
            try:
                ids.append(int(word))
            except ValueError:
                reason = f"NullTokenizer reads numbers with one space between two, and {word[:40]!r} is none"
                raise BadText(index, reason) from None
            if not 0 <= ids[-1] < self.vocab_size:
                raise BadText(index, f"the id {ids[-1]} is outside the vocabulary, 0 to {self.vocab_size - 1}")
        return ids
