"""SentencePiece models: Llama 2 and its kin."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import files
from megawrap.preprocess.tokenizers.protocol import Encoded, joined

_FLAG = "--tokenizer-model"


class SentencePieceTokenizer:
    """Encodes with the sentencepiece library; neither BOS nor EOS is added, and EOS ends a document.

    Source: Megatron-LM core_v0.19.0 megatron/core/tokenizers/text/libraries/sentencepiece_tokenizer.py and
    abstract_tokenizer.py.
    """

    def __init__(self, model: bytes, kind: object = None) -> None:
        library = _library()
        self.model = model
        self._processor = library.SentencePieceProcessor(model_proto=model)
        self.vocab_size = int(self._processor.get_piece_size())
        eos = int(self._processor.eos_id())
        self.eod = eos if eos >= 0 else None
        self.fingerprint = files.fingerprint(model, kind)
        self.engine = f"sentencepiece {library.__version__}"
        self.special_tokens: Sequence[str] = tuple(self._control_pieces())

    @classmethod
    def load(cls, settings: TokenizerSettings) -> SentencePieceTokenizer:
        """The tokenizer in ``settings.model``.

        Raises:
            ConfigError: the file cannot be read, is no SentencePiece model, or has another vocabulary size than given.
        """
        assert settings.model is not None
        kind = _LEGACY.get(settings.type, cls) if settings.legacy else cls
        tokenizer = _parse(kind, settings.model, files.read(settings.model, _FLAG))
        files.check_size(settings.vocab_size, tokenizer.vocab_size, settings.model, "pieces")
        return tokenizer

    def _control_pieces(self) -> Iterator[str]:
        for id in range(self.vocab_size):
            if self._processor.is_control(id) or self._processor.is_unknown(id):
                yield self._processor.id_to_piece(id)

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """See ``Tokenizer.encode_batch``; no text is refused."""
        # One thread: the workers are as many processes as there are to be.
        return joined(self._processor.EncodeAsNumpy(list(texts), num_threads=1))

    def decode(self, ids: Sequence[int]) -> str:
        """See ``Tokenizer.decode``. The library leaves out control pieces such as BOS."""
        return str(self._processor.decode([int(id) for id in ids]))

    def piece(self, id: int) -> str:
        """See ``Tokenizer.piece``."""
        return str(self._processor.id_to_piece(int(id)))


class LegacyLlama2Tokenizer(SentencePieceTokenizer):
    """Llama2Tokenizer of old: BOS is put before every text.

    Source: ``_Llama2Tokenizer`` in Megatron-LM core_v0.14.0 megatron/training/tokenizer/tokenizer.py.
    """

    def __init__(self, model: bytes) -> None:
        super().__init__(model, "BOS")
        self.bos = int(self._processor.bos_id())
        if self.bos < 0:
            raise RuntimeError("no BOS")

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """See ``Tokenizer.encode_batch``; no text is refused."""
        return joined([[self.bos, *ids] for ids in self._processor.encode(list(texts), num_threads=1)])


class LegacySentencePieceTokenizer(SentencePieceTokenizer):
    """SentencePieceTokenizer of old: <CLS>, <SEP>, <EOD> and <MASK> are added where the model lacks them; they, and
    the model's own PAD, BOS and EOS, are one id each where they stand in a text; <EOD> ends a document.

    Source: ``_SentencePieceTokenizer`` in Megatron-LM core_v0.14.0 megatron/training/tokenizer/tokenizer.py.
    """

    def __init__(self, model: bytes) -> None:
        super().__init__(model, "special tokens")
        known: dict[str, int] = {self._processor.id_to_piece(id): id for id in range(self.vocab_size)}
        self._special: dict[str, int] = {}
        for token in ("<CLS>", "<SEP>", "<EOD>", "<MASK>", *self._named()):
            self._special[token] = known.setdefault(token, len(known))
        self._pieces = {id: token for token, id in known.items()}
        self.vocab_size = len(known)
        self.eod = self._special["<EOD>"]
        # The first alternative that fits wins, as the first entry of a dictionary does over there.
        self._pattern = re.compile("(" + "|".join(map(re.escape, self._special)) + ")")

    def _named(self) -> Iterator[str]:
        processor = self._processor
        for id, name in ((processor.pad_id(), "<PAD>"), (processor.bos_id(), "<BOS>"), (processor.eos_id(), "<EOS>")):
            yield processor.id_to_piece(id) if id >= 0 else name

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """See ``Tokenizer.encode_batch``; no text is refused."""
        return joined([list(itertools.chain.from_iterable(self._parts(text))) for text in texts])

    def _parts(self, text: str) -> Iterator[list[int]]:
        for part in self._pattern.split(text):
            yield [self._special[part]] if part in self._special else self._processor.encode(part)

    def decode(self, ids: Sequence[int]) -> str:
        """See ``Tokenizer.decode``."""
        texts = []
        for special, group in itertools.groupby(map(int, ids), key=lambda id: self._pieces[id] in self._special):
            run = list(group)
            texts.append("".join(map(self.piece, run)) if special else super().decode(run))
        return " ".join(texts)

    def piece(self, id: int) -> str:
        """See ``Tokenizer.piece``."""
        return self._pieces[int(id)]


_LEGACY: dict[str, Any] = {
    "Llama2Tokenizer": LegacyLlama2Tokenizer,
    "SentencePieceTokenizer": LegacySentencePieceTokenizer,
}


def _library() -> Any:
    try:
        import sentencepiece
    except ModuleNotFoundError:
        raise files.missing_library("sentencepiece", "SentencePiece models need") from None
    return sentencepiece


def _parse(cls: type[SentencePieceTokenizer], path: Path, model: bytes) -> SentencePieceTokenizer:
    hint = " (it looks like JSON: a tokenizer.json is another format)" if model.lstrip().startswith(b"{") else ""
    if not model:
        raise files.refused(f"{path} is empty, and a SentencePiece model is needed", _FLAG)
    try:
        return cls(model)
    except RuntimeError:
        raise files.refused(f"{path} is not a SentencePiece model{hint}", _FLAG) from None
