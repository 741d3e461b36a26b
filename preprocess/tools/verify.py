"""Whether a dataset can be trained on: its structure, and its ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from megawrap.errors import Finding, errors
from megawrap.preprocess.indexed import header as headers
from megawrap.preprocess.indexed.blocks import Advance, unheard
from megawrap.preprocess.indexed.ids import check_ids
from megawrap.preprocess.indexed.verify import verify as verify_structure
from megawrap.preprocess.tools.lineage import lineage
from megawrap.preprocess.tools.names import absent, is_absent
from megawrap.preprocess.tools.source import sizes


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What was found. Counts are None where no header can be read, or the two files are no pair.

    ``checked_ids``: whether every id was looked at, ``highest_id`` the highest that is valid, ``vocab_size`` what they
    were compared with (None: nothing).
    """

    prefix: str
    dtype: str | None
    documents: int | None
    sequences: int | None
    tokens: int | None
    checked_ids: bool
    vocab_size: int | None
    highest_id: int | None
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong; what is only worth knowing is left aside."""
        return not errors(self.findings)


def total_bytes(prefixes: Sequence[str], *, deep: bool) -> int:
    """What ``verify`` tells ``advance`` in all about ``prefixes``."""
    index, data = sizes(prefixes)
    return index + data * deep


def verify(prefix: str, *, deep: bool = False, vocab_size: int | None = None, advance: Advance = unheard) -> Verdict:
    """Check a dataset; with ``deep`` every id too, against ``vocab_size``, or against what its manifest says."""
    if is_absent(prefix):
        return Verdict(prefix, None, None, None, None, False, None, None, (absent(prefix),))
    try:
        found = verify_structure(prefix, advance)
        header, _ = headers.read(prefix)
        if header is None:
            return Verdict(prefix, None, None, None, None, False, None, None, tuple(found))
        tokens = None if errors(found) else Path(f"{prefix}.bin").stat().st_size // header.itemsize
        goes_deep = deep and bool(tokens)
        vocab_size = vocab_size or lineage(prefix).vocab_size
        ids = check_ids(prefix, header, vocab_size, advance) if goes_deep else None
    except OSError as error:
        unreadable = headers.broken("MW640", f"{prefix} cannot be read: {error.strerror}")
        return Verdict(prefix, None, None, None, None, False, None, None, (unreadable,))
    if ids is not None:
        found = [*found, *ids.findings, *([] if vocab_size else [_unknown_vocabulary(prefix)])]
    return Verdict(
        prefix=prefix,
        dtype=np.dtype(header.dtype).name,
        documents=header.documents,
        sequences=header.sequences,
        tokens=tokens,
        checked_ids=goes_deep,
        vocab_size=vocab_size if goes_deep else None,
        highest_id=ids.highest if ids else None,
        findings=tuple(found),
    )


def _unknown_vocabulary(prefix: str) -> Finding:
    message = f"{prefix}: no manifest says how many ids its vocabulary has, so only negative ids were looked for"
    return Finding(id="MW667", severity="warning", message=message, nearest=("--vocab-size N", "tokenizer=NAME"))
