"""The record beside an output: what it was made from, and how much it holds.

It holds no time and no machine, so that the same input gives the same manifest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from megawrap.preprocess.digest import sha256
from megawrap.preprocess.indexed import header
from megawrap.preprocess.settings import Settings
from megawrap.preprocess.source import STDIN, Source, find
from megawrap.preprocess.tokenizers import build

FORMAT = 2
"""Raised when the same input would be turned into other bytes, or the manifest changes its shape."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file of the input. What it is called makes no difference."""

    name: str = dataclasses.field(compare=False)
    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What the tokens of an output depend on."""

    inputs: tuple[InputFile, ...]
    tokenizer_type: str
    tokenizer_sha256: str
    vocab_size: int
    append_eod: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One .bin/.idx. ``sequences`` are those that Megatron reads; ``blank_lines`` of the input are no documents, and
    ``rejected_lines`` could not be used."""

    key: str
    dtype: str
    documents: int
    sequences: int
    tokens: int
    blank_lines: int
    rejected_lines: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A complete run: one output for each JSON key, in the order of the keys."""

    megawrap: str
    """Version that made it."""
    engine: str
    """Library that encoded, and its version."""
    origin: Origin
    outputs: tuple[Output, ...]
    rejected: dict[str, int] = dataclasses.field(default_factory=dict)
    """Lines that were skipped, by the kind of reason."""

    @property
    def documents(self) -> int:
        """Documents in all outputs."""
        return sum(output.documents for output in self.outputs)

    @property
    def tokens(self) -> int:
        """Tokens in all outputs."""
        return sum(output.tokens for output in self.outputs)

    def pack(self, output: Output) -> bytes:
        """The JSON beside ``output``, which holds the other outputs of the run no more."""
        alone = dataclasses.replace(self, outputs=(output,))
        return orjson.dumps({"format": FORMAT, **dataclasses.asdict(alone)}, option=_OPTIONS)


_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def path(prefix: str) -> Path:
    """Where the manifest of an output is."""
    return Path(f"{prefix}.json")


def load(prefix: str) -> Manifest | None:
    """The manifest of ``prefix``; None if there is none, or none that this version can use."""
    try:
        value = orjson.loads(path(prefix).read_bytes())
        if value.pop("format") != FORMAT:
            return None
        outputs = tuple(Output(**output) for output in value.pop("outputs"))
        origin = value.pop("origin")
        inputs = tuple(InputFile(**file) for file in origin.pop("inputs"))
        return Manifest(origin=Origin(inputs=inputs, **origin), outputs=outputs, **value)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def matches(settings: Settings) -> Manifest | None:
    """The manifest of a complete output that ``settings`` would make again, else None.

    The input is read whole, for its hash, if all that can be known without it agrees.

    Raises:
        ConfigError: the input or the tokenizer cannot be read.
    """
    sources = find(settings.input)
    tokenizer = build(settings.tokenizer)
    if any(source.path == STDIN for source in sources):
        return None  # what it holds is not known before it has been read
    found = [_complete(settings.prefix(key), key) for key in settings.json_keys]
    manifests = [manifest for manifest in found if manifest is not None]
    if len(manifests) < len(found) or len({manifest.origin for manifest in manifests}) != 1:
        return None
    first = manifests[0]
    wanted = Origin(
        inputs=first.origin.inputs,
        tokenizer_type=settings.tokenizer.type,
        tokenizer_sha256=tokenizer.fingerprint,
        vocab_size=tokenizer.vocab_size,
        append_eod=settings.append_eod,
    )
    agrees = first.origin == wanted and sum(first.rejected.values()) <= settings.allowed_errors
    if not agrees or not _unchanged(sources, first.origin.inputs):
        return None
    outputs = tuple(output for manifest in manifests for output in manifest.outputs)
    return dataclasses.replace(first, outputs=outputs)


def _unchanged(sources: Sequence[Source], inputs: Sequence[InputFile]) -> bool:
    if [source.size for source in sources] != [file.bytes for file in inputs]:
        return False
    return all(sha256(source.path) == file.sha256 for source, file in zip(sources, inputs, strict=True))


def _complete(prefix: str, key: str) -> Manifest | None:
    """The manifest of ``prefix`` if its two files are there and hold as much as it says."""
    manifest = load(prefix)
    if manifest is None or [output.key for output in manifest.outputs] != [key] or header.check(prefix):
        return None
    (output,) = manifest.outputs
    index, _ = header.read(prefix)
    assert index is not None
    size = Path(f"{prefix}.bin").stat().st_size
    actual: tuple[Any, ...] = (index.dtype, index.documents, index.sequences, size)
    expected = (output.dtype, output.documents, output.sequences, output.tokens * index.itemsize)
    return manifest if actual == expected else None
