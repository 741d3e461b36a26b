"""GPT2BPETokenizer: the vocabulary and the merges in files of their own."""

from __future__ import annotations

from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import files
from megawrap.preprocess.tokenizers.hugging_face import HuggingFaceTokenizer, added, library

EOD = "<|endoftext|>"
_VOCAB, _MERGES = "--vocab-file", "--merge-file"


def load(settings: TokenizerSettings) -> HuggingFaceTokenizer:
    """The tokenizer of ``settings.vocab_file`` and ``settings.merge_file``; <|endoftext|> ends a document.

    Where <|endoftext|> stands in a text it is that id, but in the legacy tokenizer. Megatron from 0.15 on asks the
    hub for `gpt2` even so, and where it finds a tokenizer.json there takes that; the files are the same as GPT-2's.

    Source: Megatron-LM core_v0.19.0 megatron/core/tokenizers/text/libraries/megatron_hf_tokenizer.py; legacy:
    core_v0.14.0 megatron/training/tokenizer/gpt2_tokenization.py.

    Raises:
        ConfigError: a file is not what it should be.
    """
    assert settings.vocab_file is not None and settings.merge_file is not None
    vocab, merges = files.read(settings.vocab_file, _VOCAB), files.read(settings.merge_file, _MERGES)
    made = library()
    try:
        model = made.models.BPE.from_file(str(settings.vocab_file), str(settings.merge_file))
    except Exception as error:  # noqa: BLE001 (the library raises bare exceptions)
        reason = str(error).splitlines()[0][:200]
        message = f"{settings.vocab_file} and {settings.merge_file} are no vocabulary and merges of GPT-2: {reason}"
        raise files.refused(message, _VOCAB, _MERGES) from None
    tokenizer = made.Tokenizer(model)
    if tokenizer.token_to_id(EOD) is None:
        raise files.refused(f"{settings.vocab_file} lacks {EOD}, which ends a document", _VOCAB)
    tokenizer.pre_tokenizer = made.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = made.decoders.ByteLevel()
    if not settings.legacy:
        tokenizer.add_special_tokens([added(token) for token in (EOD, *(settings.special_tokens or ()))])
    fingerprint = files.fingerprint(vocab, merges, settings.special_tokens, bool(settings.legacy))
    finished = HuggingFaceTokenizer(tokenizer, EOD, fingerprint)
    files.check_size(settings.vocab_size, finished.vocab_size, settings.vocab_file, "tokens", _VOCAB)
    return finished
