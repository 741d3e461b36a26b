"""What to tokenize, how and where to: the one input of ``preprocess.engine``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from megawrap.errors import Finding, nearest

_ON_ERROR = ("stop", "skip")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerSettings:
    """A tokenizer by Megatron's name for its type, and the files or numbers that make it."""

    type: str
    """Megatron's ``--tokenizer-type``."""
    model: Path | None = None
    """The model file, its folder, or a name on the Hugging Face hub, as the type wants it."""
    vocab_file: Path | None = None
    """The vocabulary of types that keep it in a file of its own."""
    merge_file: Path | None = None
    """The BPE merges of types that keep them in a file of their own."""
    vocab_size: int | None = None
    """Number of ids, before padding. Where a file tells it too, both must agree."""
    extra_vocab_size: int | None = None
    """DeepSeek types: ids behind those of the model file that are counted too."""
    special_tokens: tuple[str, ...] | None = None
    """Further tokens that are never cut; for TikTokenizer all of those before the fillers."""
    tiktoken_pattern: str | None = None
    """TikTokenizer: v1 or v2, how text is cut before the merges (v2)."""
    tiktoken_num_special_tokens: int | None = None
    """TikTokenizer: ids that are kept for special tokens, in front of all others (1000)."""
    include_special_tokens: bool | None = None
    """Hugging Face types: whether the model's own BOS, EOS, [CLS] and [SEP] are put around every text (true)."""
    legacy: bool | None = None
    """Whether to tokenize as Megatron does with ``--legacy-tokenizer``, and as all releases before 0.15 do (false)."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """One run: JSON lines in, one pair of .bin/.idx out for each JSON key."""

    input: Path
    """A file, a folder, a pattern such as ``part-*.jsonl.gz``, or ``-`` for standard input: JSON objects, one a line,
    plain or packed by gzip or zstd, or Parquet."""
    output_prefix: str
    """Start of the output names; ``_KEY_document.bin`` and the like are put behind it, as Megatron does."""
    tokenizer: TokenizerSettings
    json_keys: tuple[str, ...] = ("text",)
    """Keys of the objects that hold the text."""
    append_eod: bool = False
    """Whether every document that has tokens ends with the end-of-document id."""
    workers: int = 1
    """Number of processes that encode. The output does not depend on it."""
    on_error: str = "stop"
    """What a line does that cannot be used: ``stop`` the run, or ``skip`` it and tell of it beside the output."""
    max_errors: int = 1000
    """Lines that may be skipped before the run fails all the same."""
    resume: bool = False
    """Whether to go on where an earlier run of the same settings ended, and to leave behind what one needs for it."""

    @property
    def allowed_errors(self) -> int:
        """Number of lines that may be unusable."""
        return self.max_errors if self.on_error == "skip" else 0

    def prefix(self, key: str) -> str:
        """Path of the output for ``key`` without its suffix: what ``--data-path`` takes."""
        return f"{self.output_prefix}_{key}_document"

    def problems(self) -> Iterator[Finding]:
        """What is wrong with the values themselves, files left aside."""
        if self.workers < 1:
            message = f"--workers {self.workers}: at least one process has to do the work"
            yield Finding(id="MW600", message=message, keys=("--workers",), nearest=("1",))
        if self.on_error not in _ON_ERROR:
            message = f"--on-error {self.on_error}: it is one of stop, skip"
            yield Finding(id="MW600", message=message, keys=("--on-error",), nearest=nearest(self.on_error, _ON_ERROR))
        if self.max_errors < 0:
            message = f"--max-errors {self.max_errors}: a number of lines is needed"
            yield Finding(id="MW600", message=message, keys=("--max-errors",), nearest=("0",))
        if self.resume and str(self.input) == "-":
            message = "--resume: standard input cannot be read a second time; write it to a file first"
            yield Finding(id="MW600", message=message, keys=("--resume", "--input"))
        if not self.json_keys or len(set(self.json_keys)) < len(self.json_keys):
            message = f"--json-keys {' '.join(self.json_keys)}: at least one key is needed, and each only once"
            yield Finding(id="MW600", message=message, keys=("--json-keys",))
        for key in self.json_keys:
            if not key or "/" in key or "\0" in key:
                message = (
                    f"--json-keys {key!r}: the key becomes part of a file name, so it cannot be empty or hold a slash"
                )
                yield Finding(id="MW600", message=message, keys=("--json-keys",))
