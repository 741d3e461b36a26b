"""Inputs and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from preprocess_helpers import SP, lines

from megawrap.preprocess.sample.make import CORPUS, TOKENIZER
from megawrap.preprocess.settings import Settings


@pytest.fixture(scope="session")
def processor() -> Any:
    """The sample tokenizer, by its own library and one text at a time."""
    return sentencepiece.SentencePieceProcessor(model_proto=TOKENIZER.read_bytes())


@pytest.fixture(scope="session")
def sample_lines() -> list[bytes]:
    """The first lines of the sample corpus."""
    return CORPUS.read_bytes().splitlines(keepends=True)[:400]


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    """``settings(data, **changes)``: data is written to ``in.jsonl``, the output goes to ``out``."""

    def make(data: bytes | Sequence[Any], **changes: Any) -> Settings:
        file = tmp_path / "in.jsonl"
        file.write_bytes(data if isinstance(data, bytes) else lines(data))
        return Settings(**{"input": file, "output_prefix": str(tmp_path / "out"), "tokenizer": SP, **changes})

    return make
