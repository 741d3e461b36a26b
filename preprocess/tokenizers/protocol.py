"""What the engine asks of a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt


class Encoded(NamedTuple):
    """Some texts as ids, one behind the other: ``ids`` of shape [tokens], ``lengths`` (tokens) of shape [texts]."""

    ids: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int64]


def joined(batch: Sequence[Sequence[int] | npt.NDArray[np.int32]]) -> Encoded:
    """The ids of each text, one behind the other."""
    lengths = np.fromiter(map(len, batch), dtype=np.int64, count=len(batch))
    return Encoded(np.concatenate([np.empty(0, np.int32), *(np.asarray(ids, np.int32) for ids in batch)]), lengths)


class BadText(Exception):
    """A text that a tokenizer cannot encode: its index in the batch, and the reason."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(index, reason)
        self.index = index
        self.reason = reason


class Tokenizer(Protocol):
    """A tokenizer that gives the ids that Megatron's tokenizer of the same type gives."""

    @property
    def vocab_size(self) -> int:
        """Number of ids, before padding. It decides the number of bytes that an id is stored in."""

    @property
    def eod(self) -> int | None:
        """Id that ends a document; None when the tokenizer has none."""

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of what the ids depend on."""

    @property
    def engine(self) -> str:
        """Library that encodes, and its version."""

    @property
    def special_tokens(self) -> Sequence[str]:
        """Tokens with a meaning of their own, such as BOS: how they are written, not whether a text may hold them."""

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """Encode ``texts``, which hold no lone surrogates.

        Raises:
            BadText: for the first text that cannot be encoded.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some ids, special tokens included; what is no whole character is replaced."""

    def piece(self, id: int) -> str:
        """One id as the vocabulary writes it, for people to read."""


def dtype_for(vocab_size: int) -> str:
    """numpy name of the type that ids are stored in: little-endian, 2 bytes if they fit, else 4.

    Source: ``DType.optimal_dtype`` in Megatron-LM core_v0.19.0 megatron/core/datasets/indexed_dataset.py.
    """
    return "<u2" if vocab_size < 65500 else "<i4"
