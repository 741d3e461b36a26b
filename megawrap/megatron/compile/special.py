"""What differs between releases, or takes more than one field to say: one small function per section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from megawrap.config.sections.root import Config
from megawrap.errors import ConfigError, Finding
from megawrap.megatron.compile.encode import Setting
from megawrap.megatron.surface import Surface

T = TypeVar("T")


def special(config: Config, surface: Surface) -> Iterator[Setting]:
    """Settings that no single field carries."""
    yield from _precision(config)
    yield from _attention(config)
    yield from _tokenizer(config, surface)
    yield from _data(config)


def _precision(config: Config) -> Iterator[Setting]:
    if config.precision.dtype != "fp32":
        yield Setting(f"--{config.precision.dtype}", True, "precision.dtype")


def _attention(config: Config) -> Iterator[Setting]:
    if config.attention.backend is not None:
        yield Setting("--attention-backend", config.attention.backend, "attention.backend")


def _tokenizer(config: Config, surface: Surface) -> Iterator[Setting]:
    """From ROCm's 2026 fork to core 0.16 the parser takes types that only the old way of building tokenizers knows
    (megatron/core/tokenizers/text/utils/build_tokenizer.py)."""
    if "--legacy-tokenizer" in surface:
        if config.tokenizer.type in _OLD_WAY:
            yield Setting("--legacy-tokenizer", True, "tokenizer.type")
        elif config.tokenizer.legacy:
            yield Setting("--legacy-tokenizer", True, "tokenizer.legacy")
    yield from _special_tokens(config.tokenizer.include_special_tokens, surface)


def _special_tokens(wanted: bool | None, surface: Surface) -> Iterator[Setting]:
    """0.16 has a flag to ask for them, later releases one to do without; 0.15 leaves them out, older ones never do."""
    flags = {True: "--tokenizer-hf-include-special-tokens", False: "--tokenizer-hf-no-include-special-tokens"}
    if wanted is not None and flags[wanted] in surface:
        yield Setting(flags[wanted], True, "tokenizer.include_special_tokens")


_OLD_WAY = ("DeepSeekV2Tokenizer", "DeepSeekV3Tokenizer", "MultimodalTokenizer", "NullMultimodalTokenizer",
            "SFTTokenizer")  # fmt: skip


def _data(config: Config) -> Iterator[Setting]:
    data = config.data
    if data.source == "mock":
        yield Setting("--mock-data", True, "data.source")
    elif data.source == "prefix":
        yield Setting("--data-path", [required(data.prefix, "data.prefix", "data.source=prefix")], "data.prefix")
    elif data.source == "blend":
        yield Setting("--data-path", required(data.blend, "data.blend", "data.source=blend"), "data.blend")
    elif data.source in ("jsonl", "sample"):
        yield Setting("--data-path", token_prefixes(config), "data.output_prefix")


def token_prefixes(config: Config) -> list[str]:
    """Names of the token files that tokenizing will write, without .bin/.idx, as Megatron's own tool names them."""
    data = config.data
    prefix = required(data.output_prefix, "data.output_prefix", f"data.source={data.source}")
    return [f"{prefix}_{key}_document" for key in data.json_keys]


def required(value: T | None, key: str, reason: str) -> T:
    """``value``, which ``reason`` makes necessary.

    Raises:
        ConfigError: when it is not set.
    """
    if not value:
        raise ConfigError(Finding(id="MW015", keys=(key,), message=f"{key} is not set, and {reason} needs it"))
    return value
