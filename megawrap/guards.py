"""What the file system says about a plan: inputs that are not there, tokenizers that cannot read text (MW65x)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from megawrap.config.sections.root import Config
from megawrap.errors import Finding
from megawrap.plan import LaunchPlan

# Tokenizers whose model is a file here; the others may name something on a hub.
FILE_TOKENIZERS = ("Llama2Tokenizer", "SentencePieceTokenizer", "GPTSentencePieceTokenizer", "TikTokenizer")


def guard(plan: LaunchPlan) -> LaunchPlan:
    """The plan, its findings completed by what its input files show."""
    config = plan.composed.config
    found = [
        dataclasses.replace(finding, origin=plan.composed.origins.of(*finding.keys))
        for finding in (*_data(config), *_tokenizer(config))
    ]
    return dataclasses.replace(plan, findings=(*plan.findings, *found)) if found else plan


def _data(config: Config) -> Iterator[Finding]:
    data = config.data
    if data.source in ("jsonl", "sample") and data.input is not None:
        yield from _text(Path(data.input))
    prefixes = [data.prefix] if data.source == "prefix" else data.blend[1::2] if data.source == "blend" else []
    key = "data.prefix" if data.source == "prefix" else "data.blend"
    for prefix in prefixes:
        missing = [f"{prefix}{end}" for end in (".bin", ".idx") if not Path(f"{prefix}{end}").is_file()]
        if missing:
            yield Finding(id="MW651", keys=(key,), message=f"{key} = {prefix}: there is no {' and no '.join(missing)}")


def _text(file: Path) -> Iterator[Finding]:
    if not file.is_file():
        yield Finding(id="MW650", keys=("data.input",), message=f"data.input = {file}: there is no such file")
    elif file.stat().st_size == 0:
        yield Finding(id="MW652", keys=("data.input",), message=f"data.input = {file} is empty: nothing to train on")


def _tokenizer(config: Config) -> Iterator[Finding]:
    tokenizer = config.tokenizer
    if config.data.source in ("jsonl", "sample") and tokenizer.type == "NullTokenizer":
        message = "text needs a tokenizer, and NullTokenizer reads only numbers"
        keys = ("tokenizer.type", "data.source")
        yield Finding(id="MW653", keys=keys, message=message, nearest=("tokenizer=llama2", "tokenizer=huggingface"))
    if tokenizer.type in FILE_TOKENIZERS:
        if tokenizer.model is None:
            message = f"tokenizer.model is not set, and {tokenizer.type} needs its file"
            yield Finding(id="MW654", keys=("tokenizer.model",), message=message)
        elif not Path(tokenizer.model).is_file():
            message = f"tokenizer.model = {tokenizer.model}: there is no such file"
            yield Finding(id="MW654", keys=("tokenizer.model",), message=message)
