"""What the record beside a dataset says of the tokenizer that made it, and the record beside a merged or split one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import orjson

from megawrap.errors import Finding
from megawrap.preprocess import manifest
from megawrap.preprocess.indexed.header import broken
from megawrap.preprocess.tokenizers import Tokenizer

FORMAT = "tools-1"
"""Not the format of a tokenized text's manifest: no text can be found to match this one."""

_ALIKE = {
    "tokenizer_sha256": "by different tokenizers",
    "append_eod": "with and without an end-of-document token",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Lineage:
    """The fields of a manifest's ``origin`` that what is made of a dataset inherits; None: not known."""

    tokenizer_type: str | None = None
    tokenizer_sha256: str | None = None
    vocab_size: int | None = None
    append_eod: bool | None = None


def lineage(prefix: str) -> Lineage:
    """What is known of the tokens of ``prefix``: nothing, if no manifest that can be read is there."""
    try:
        origin = orjson.loads(manifest.path(prefix).read_bytes())["origin"]
        return Lineage(**{field.name: origin.get(field.name) for field in dataclasses.fields(Lineage)})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Lineage()


def mixed(prefixes: Sequence[str]) -> list[Finding]:
    """Datasets that were tokenized differently: their ids mean different things, and no size tells."""
    known = {prefix: lineage(prefix) for prefix in prefixes}
    found = []
    for name, says in _ALIKE.items():
        values: dict[object, str] = {}
        for prefix, one in known.items():
            values.setdefault(getattr(one, name), prefix)
        values.pop(None, None)
        if len(values) > 1:
            first, second, *_ = values.values()
            message = f"{first} and {second} were made {says} (their .json say so)"
            found.append(dataclasses.replace(broken("MW663", message), nearest=("--mixed",)))
    return found


def other_tokenizer(prefix: str, tokenizer: Tokenizer | None) -> list[Finding]:
    """That ``prefix`` was not made by ``tokenizer``, if its manifest says so."""
    known = lineage(prefix)
    if tokenizer is None or known.tokenizer_sha256 in (None, tokenizer.fingerprint):
        return []
    message = (
        f"{prefix}.json says that a {known.tokenizer_type} of {known.vocab_size} ids with other files made it "
        f"than this tokenizer of {tokenizer.vocab_size}"
    )
    return [dataclasses.replace(broken("MW670", message), severity="warning")]


def common(prefixes: Sequence[str]) -> Lineage:
    """What is known of the tokens of all of ``prefixes``."""
    known = [lineage(prefix) for prefix in prefixes]
    shared = {}
    for field in dataclasses.fields(Lineage):
        values = {getattr(one, field.name) for one in known}
        shared[field.name] = values.pop() if len(values) == 1 else None
    return Lineage(**shared)


def record(made: str, origin: Lineage, **counts: Any) -> bytes:
    """The JSON beside a dataset that ``made`` (merge, split) has written."""
    value = {"format": FORMAT, "made": made, "origin": dataclasses.asdict(origin), **counts}
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
