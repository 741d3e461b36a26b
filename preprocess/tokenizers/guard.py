"""The exactness guard: a quicker encoder is used only where it gives the ids of the reference on all that is tried."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from megawrap.preprocess import golden
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import fast
from megawrap.preprocess.tokenizers.protocol import Tokenizer
from megawrap.preprocess.tokenizers.registry import build

_NASTY = Path(__file__).with_name("nasty.json")
_BATCH = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """What encodes, and why."""

    recipe: TokenizerSettings | fast.Definition
    """What ``build`` makes the same tokenizer from in another process."""
    tokenizer: Tokenizer
    reason: str
    """One sentence for people: which library encodes and what it was compared with, or why no quicker one does."""


def choose(settings: TokenizerSettings, sample: Iterable[str] = ()) -> Choice:
    """The quickest encoder that gives the ids of the reference on ``sample``, on the texts of the golden vectors and on
    others that are hard to tokenize.

    Args:
        settings: a tokenizer.
        sample: texts of the input: from its beginning, its middle and its end.

    Raises:
        ConfigError: as for ``build``.
    """
    reference = build(settings)
    try:
        definition = fast.define(settings, reference)
        quick = fast.FastTokenizer(definition, lambda: reference)
    except fast.Unsupported as why:
        return Choice(settings, reference, f"{reference.engine}: {why}")
    tried = 0
    for batch in _batches((*golden.all_texts(), *hard_texts(reference.special_tokens), *sample)):
        difference = _difference(reference, quick, batch)
        if difference is not None:
            return Choice(settings, reference, f"{reference.engine}: {quick.engine} differs from it on {difference}")
        tried += len(batch)
    reason = f"{quick.engine}: the ids of {reference.engine} on all {tried} texts that were tried"
    return Choice(definition, quick, reason)


def hard_texts(special_tokens: Sequence[str] = ()) -> Iterator[str]:
    """Texts on which encoders are known to differ, ``special_tokens`` in awkward places among them."""
    content = json.loads(_NASTY.read_text(encoding="utf-8"))
    yield from content["texts"]
    for row in content["runs"]:
        yield row["text"] * row["times"]
    for token in special_tokens[:64]:
        yield f"{token}"
        yield f"a{token}b {token} {token}{token}\n {token}\n"
        yield f"{token[:-1]} {token[1:]} {token.upper()} {token.lower()}"
    yield " ".join(special_tokens)


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _difference(reference: Tokenizer, quick: Tokenizer, texts: list[str]) -> str | None:
    expected, actual = reference.encode_batch(texts), quick.encode_batch(texts)
    if expected.ids.tobytes() == actual.ids.tobytes() and expected.lengths.tobytes() == actual.lengths.tobytes():
        return None
    for text in texts:
        wanted, given = (one.encode_batch([text]).ids.tolist() for one in (reference, quick))
        if wanted != given:
            return _first(text, wanted, given)
    return "a batch of texts, and on none of them alone"


def _first(text: str, wanted: list[int], given: list[int]) -> str:
    at = next(
        (at for at, (a, b) in enumerate(zip(wanted, given, strict=False)) if a != b), min(len(wanted), len(given))
    )
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return f"{shown!r}, where id {at} is {_id(given, at)} instead of {_id(wanted, at)}"


def _id(ids: list[int], at: int) -> str:
    return str(ids[at]) if at < len(ids) else "missing"
