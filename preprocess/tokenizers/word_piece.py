"""BertWordPieceLowerCase and BertWordPieceCase: a vocabulary of words and parts of words, one a line."""

from __future__ import annotations

from typing import Any

from megawrap.errors import ConfigError, Finding
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import files
from megawrap.preprocess.tokenizers.hugging_face import HuggingFaceTokenizer, added, library, template

_VOCAB = "--vocab-file"
_NAMED = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def load(settings: TokenizerSettings) -> HuggingFaceTokenizer:
    """The tokenizer of ``settings.vocab_file``: [CLS] before and [SEP] behind every text; [SEP] ends a document.

    BertWordPieceCase has <extra_id_0> to <extra_id_99> besides.

    Source: Megatron-LM core_v0.19.0 megatron/core/tokenizers/utils/build_tokenizer.py, and ``BertTokenizer`` of
    transformers 5.24.0.

    Raises:
        ConfigError: the file is no such vocabulary, or the legacy tokenizer is asked for.
    """
    assert settings.vocab_file is not None
    if settings.legacy:
        message = f"--legacy-tokenizer: {settings.type} as it was before 0.15 cannot be used here"
        raise ConfigError(Finding(id="MW613", message=message, keys=("--legacy-tokenizer", "--tokenizer-type")))
    data = files.read(settings.vocab_file, _VOCAB)
    tokenizer = _tokenizer(settings)
    wanted = settings.include_special_tokens is not False
    cased = settings.type == "BertWordPieceCase"
    extra = [f"<extra_id_{id}>" for id in range(100)] if cased else list(settings.special_tokens or ())
    tokenizer.add_special_tokens([added(token) for token in extra])
    fingerprint = files.fingerprint(data, settings.type, extra)
    made = HuggingFaceTokenizer(tokenizer, "[SEP]", fingerprint, include_special_tokens=wanted)
    files.check_size(settings.vocab_size, made.vocab_size, settings.vocab_file, "tokens", _VOCAB)
    return made


def _tokenizer(settings: TokenizerSettings) -> Any:
    made = library()
    file = settings.vocab_file
    try:
        tokenizer = made.Tokenizer(made.models.WordPiece.from_file(str(file), unk_token="[UNK]"))
    except Exception as error:  # noqa: BLE001 (the library raises bare exceptions)
        raise files.refused(f"{file} is no vocabulary of BERT: {str(error).splitlines()[0][:200]}", _VOCAB) from None
    missing = [token for token in _NAMED if tokenizer.token_to_id(token) is None]
    if missing:
        message = f"{file} lacks {' '.join(missing)}: BERT's vocab.txt has a word a line, these among them"
        raise files.refused(message, _VOCAB)
    lower = settings.type == "BertWordPieceLowerCase"
    tokenizer.normalizer = made.normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = made.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = made.decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens([added(token) for token in _NAMED])
    tokenizer.post_processor = template(tokenizer, "[CLS]", "[SEP]")
    return tokenizer
