"""Hugging Face tokenizers: tokenizer.json alone or in its folder, and what Megatron makes of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import files, hub
from megawrap.preprocess.tokenizers.protocol import Encoded, joined

_MODEL = "--tokenizer-model"
# Text in one call of the library: it makes an object for every token, 100 bytes and more.
_BATCH = 1 << 18


class HuggingFaceTokenizer:
    """Encodes with the tokenizers library. The tokens that the model's template puts around a text are kept, unless
    ``include_special_tokens`` is false; EOS ends a document, or SEP where there is no EOS.

    Source: Megatron-LM core_v0.19.0 megatron/core/tokenizers/text/libraries/huggingface_tokenizer.py. From 0.15 to
    0.16 such tokens were left out unless ``--tokenizer-hf-include-special-tokens`` was given.
    """

    def __init__(
        self, tokenizer: Any, eos: str | None, fingerprint: str, *, include_special_tokens: bool = True
    ) -> None:
        self.library_tokenizer = tokenizer
        self.include_special_tokens = include_special_tokens
        self.before, self.after = _around(tokenizer) if include_special_tokens else ([], [])
        self.vocab_size = int(tokenizer.get_vocab_size())
        self.eod: int | None = None if eos is None else tokenizer.token_to_id(eos)
        self.fingerprint = files.fingerprint(fingerprint, include_special_tokens)
        self.engine = f"tokenizers {library().__version__}"
        added_tokens = tokenizer.get_added_tokens_decoder().values()
        self.special_tokens: Sequence[str] = tuple(token.content for token in added_tokens)
        self.doubt: str | None = None

    @classmethod
    def load(cls, settings: TokenizerSettings) -> HuggingFaceTokenizer:
        """The tokenizer in ``settings.model``: a tokenizer.json, a folder with one, or a name on the hub.

        Raises:
            ConfigError: nothing is there, or it is no tokenizer.
        """
        assert settings.model is not None
        found = hub.find(settings.model)
        tokenizer = parse(found.json, str(found.path))
        names = {name: hub.content(found.config[name]) for name in _NAMED if found.config.get(name)}
        _register(tokenizer, found.config, names, settings)
        wanted = settings.include_special_tokens is not False
        fingerprint = files.fingerprint(found.json, sorted(names.items()), settings.special_tokens)
        eos = names.get("eos_token") or (None if settings.legacy else names.get("sep_token"))
        made = cls(tokenizer, eos, fingerprint, include_special_tokens=wanted)
        made.doubt = _doubt(made, found.config)
        files.check_size(settings.vocab_size, made.vocab_size, found.path, "tokens")
        return made

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """See ``Tokenizer.encode_batch``; no text is refused."""
        tokenizer, wanted = self.library_tokenizer, self.include_special_tokens
        return joined(
            [
                encoding.ids
                for batch in _batches(texts)
                for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=wanted)
            ]
        )

    def decode(self, ids: Sequence[int]) -> str:
        """See ``Tokenizer.decode``."""
        return str(self.library_tokenizer.decode([int(id) for id in ids], skip_special_tokens=False))

    def piece(self, id: int) -> str:
        """See ``Tokenizer.piece``."""
        return str(self.library_tokenizer.id_to_token(int(id)))


def _around(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Ids that the template puts before a text, and behind it."""
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    whole = tokenizer.encode("a").ids
    start = next((at for at in range(len(whole)) if whole[at : at + len(bare)] == bare), len(whole))
    return whole[:start], whole[start + len(bare) :]


def _doubt(made: HuggingFaceTokenizer, config: dict[str, Any]) -> str | None:
    """What transformers 4 and 5 read differently: 5 lets tokenizer.json alone say whether there is a BOS or EOS, and 4
    lets the configuration of some classes say it."""
    named = (("add_bos_token", "BOS", bool(made.before)), ("add_eos_token", "EOS", bool(made.after)))
    for key, name, is_there in named:
        if key in config and bool(config[key]) != is_there and made.include_special_tokens:
            does = "adds" if is_there else "does not add"
            return (
                f"tokenizer_config.json says {key}: {str(bool(config[key])).lower()}, and the template of "
                f"tokenizer.json {does} {name}; the template counts here, as in transformers 5, and transformers 4 may "
                f"go by the configuration"
            )
    return None


def load_deepseek(settings: TokenizerSettings) -> HuggingFaceTokenizer:
    """DeepSeekV2Tokenizer and DeepSeekV3Tokenizer of ROCm's fork: HuggingFaceTokenizer with another number of ids,
    those of the model without added tokens and ``extra_vocab_size`` more.

    Source: ``_DeepSeekV3Tokenizer`` in ROCm's Megatron-LM, branch rocm_dev of 2026-02,
    megatron/training/tokenizer/tokenizer.py.

    Raises:
        ConfigError: as for HuggingFaceTokenizer.
    """
    made = HuggingFaceTokenizer.load(settings)
    made.vocab_size = made.library_tokenizer.get_vocab_size(with_added_tokens=False) + (settings.extra_vocab_size or 0)
    return made


def parse(data: bytes, name: str) -> Any:
    """The library's tokenizer in the content of a tokenizer.json, without its truncation and padding.

    Raises:
        ConfigError: it is none.
    """
    try:
        tokenizer = library().Tokenizer.from_str(data.decode())
    except Exception as error:  # noqa: BLE001 (the library raises bare exceptions)
        raise files.refused(f"{name} is no tokenizer.json: {str(error).splitlines()[0][:200]}", _MODEL) from None
    # Megatron asks for neither, and what is asked for with a text wins over what the file says.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def _register(tokenizer: Any, config: dict[str, Any], names: dict[str, str], settings: TokenizerSettings) -> None:
    """What transformers and Megatron add to a tokenizer.json when they read the files beside it."""
    for token in _listed(tokenizer, config, names.values()):
        tokenizer.add_tokens([token])
    if not settings.legacy:
        # Megatron gives SEP to models that have only EOS, and CLS to those that have only BOS, as plain tokens.
        pairs = (("sep_token", "eos_token"), ("eos_token", "sep_token"), ("bos_token", "cls_token"),
                 ("cls_token", "bos_token"))  # fmt: skip
        again = [names[other] for name, other in pairs if name not in names and other in names]
        tokenizer.add_special_tokens([added(token) for token in (*again, *(settings.special_tokens or ()))])


def _listed(tokenizer: Any, config: dict[str, Any], named: Iterable[str]) -> Iterator[Any]:
    """Tokens of the configuration that the tokenizer does not treat as such yet, by id, then those with a name."""
    known = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    decoder = config.get("added_tokens_decoder") or {}
    for _, value in sorted(decoder.items(), key=lambda item: int(item[0])):
        if value["content"] not in known:
            known.add(value["content"])
            flags = ("lstrip", "rstrip", "single_word", "normalized", "special")
            yield library().AddedToken(value["content"], **{flag: bool(value[flag]) for flag in flags if flag in value})
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    for token in [*named, *(hub.content(value) for value in (extra.values() if isinstance(extra, dict) else extra))]:
        if token not in known:
            known.add(token)
            yield library().AddedToken(token, special=True)


def added(token: str) -> Any:
    """A special token that is found wherever it stands, exactly as it is."""
    return library().AddedToken(token, special=True, normalized=False, lstrip=False, rstrip=False)


def template(tokenizer: Any, before: str | None, after: str | None) -> Any:
    """What puts a token before and one behind every text."""
    single = " ".join(word for word in (before, "$A", after) if word)
    tokens = [(token, tokenizer.token_to_id(token)) for token in (before, after) if token]
    return library().processors.TemplateProcessing(single=single, pair=f"{single} $B", special_tokens=tokens)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def library() -> Any:
    """The tokenizers library, told to stay in the process that calls it: the workers are processes themselves.

    Raises:
        ConfigError: it is not installed.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import tokenizers
    except ModuleNotFoundError:
        raise files.missing_library("tokenizers", "this tokenizer needs") from None
    return tokenizers
