"""What to tokenize, how and where to: the one input of ``preprocess.engine``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from megawrap.errors import Finding


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerSettings:
    """A tokenizer by Megatron's name for its type, and the files or numbers that make it."""

    type: str
    """Megatron's ``--tokenizer-type``."""
    model: Path | None = None
    """The model file of SentencePiece types."""
    vocab_file: Path | None = None
    """The vocabulary of types that keep it in a file of its own."""
    merge_file: Path | None = None
    """The BPE merges of types that keep them in a file of their own."""
    vocab_size: int | None = None
    """Number of ids, before padding. Where a file tells it too, both must agree."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """One run: JSON lines in, one pair of .bin/.idx out for each JSON key."""

    input: Path
    """A file of JSON objects, one a line."""
    output_prefix: str
    """Start of the output names; ``_KEY_document.bin`` and the like are put behind it, as Megatron does."""
    tokenizer: TokenizerSettings
    json_keys: tuple[str, ...] = ("text",)
    """Keys of the objects that hold the text."""
    append_eod: bool = False
    """Whether every document that has tokens ends with the end-of-document id."""
    workers: int = 1
    """Number of processes that encode. The output does not depend on it."""

    def prefix(self, key: str) -> str:
        """Path of the output for ``key`` without its suffix: what ``--data-path`` takes."""
        return f"{self.output_prefix}_{key}_document"

    def problems(self) -> Iterator[Finding]:
        """What is wrong with the values themselves, files left aside."""
        if self.workers < 1:
            message = f"--workers {self.workers}: at least one process has to do the work"
            yield Finding(id="MW600", message=message, keys=("--workers",), nearest=("1",))
        if not self.json_keys or len(set(self.json_keys)) < len(self.json_keys):
            message = f"--json-keys {' '.join(self.json_keys)}: at least one key is needed, and each only once"
            yield Finding(id="MW600", message=message, keys=("--json-keys",))
        for key in self.json_keys:
            if not key or "/" in key or "\0" in key:
                message = (
                    f"--json-keys {key!r}: the key becomes part of a file name, so it cannot be empty or hold a slash"
                )
                yield Finding(id="MW600", message=message, keys=("--json-keys",))
