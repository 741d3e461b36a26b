"""SentencePiece models: Llama 2 and its kin."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from megawrap.errors import ConfigError, Finding
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers.protocol import Encoded


class SentencePieceTokenizer:
    """Encodes with the sentencepiece library; neither BOS nor EOS is added, and EOS ends a document.

    Source: Megatron-LM core_v0.19.0 megatron/core/tokenizers/text/libraries/sentencepiece_tokenizer.py and
    abstract_tokenizer.py. The older tokenizer that releases up to 0.16 keep behind ``--legacy-tokenizer`` puts BOS
    before every text for Llama2Tokenizer.
    """

    def __init__(self, model: bytes) -> None:
        library = _library()
        self._processor = library.SentencePieceProcessor(model_proto=model)
        self.vocab_size = int(self._processor.get_piece_size())
        eos = int(self._processor.eos_id())
        self.eod = eos if eos >= 0 else None
        self.fingerprint = hashlib.sha256(model).hexdigest()
        self.engine = f"sentencepiece {library.__version__}"

    @classmethod
    def load(cls, settings: TokenizerSettings) -> SentencePieceTokenizer:
        """The tokenizer in ``settings.model``.

        Raises:
            ConfigError: the file cannot be read, is no SentencePiece model, or has another vocabulary size than given.
        """
        assert settings.model is not None
        tokenizer = _parse(cls, settings.model, _read(settings.model))
        if settings.vocab_size not in (None, tokenizer.vocab_size):
            message = f"--vocab-size {settings.vocab_size}: {settings.model} has {tokenizer.vocab_size} pieces"
            keys = ("--vocab-size", "--tokenizer-model")
            raise ConfigError(Finding(id="MW613", message=message, keys=keys, nearest=(str(tokenizer.vocab_size),)))
        return tokenizer

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """See ``Tokenizer.encode_batch``; no text is refused."""
        # One thread: the workers are as many processes as there are to be.
        batch = self._processor.EncodeAsNumpy(list(texts), num_threads=1)
        lengths = np.fromiter(map(len, batch), dtype=np.int64, count=len(batch))
        return Encoded(np.concatenate([np.empty(0, dtype=np.int32), *batch]), lengths)


def _library() -> Any:
    try:
        import sentencepiece
    except ModuleNotFoundError:
        message = "SentencePiece models need the package sentencepiece: pip install sentencepiece"
        raise ConfigError(Finding(id="MW615", message=message, keys=("--tokenizer-type",))) from None
    return sentencepiece


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise _refused(f"{path}: there is no such file") from None
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror}") from None


def _parse(cls: type[SentencePieceTokenizer], path: Path, model: bytes) -> SentencePieceTokenizer:
    hint = " (it looks like JSON: a tokenizer.json is another format)" if model.lstrip().startswith(b"{") else ""
    try:
        if not model:
            raise _refused(f"{path} is empty, and a SentencePiece model is needed")
        return cls(model)
    except RuntimeError:
        raise _refused(f"{path} is not a SentencePiece model{hint}") from None


def _refused(message: str) -> ConfigError:
    return ConfigError(Finding(id="MW612", message=message, keys=("--tokenizer-model",)))
