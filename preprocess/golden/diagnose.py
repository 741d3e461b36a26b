"""Name what two lists of ids of the same texts differ in: BOS or EOS, the rule for leading spaces, a normalisation,
another vocabulary, another order of merges."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence

from megawrap.preprocess.golden import Family
from megawrap.preprocess.tokenizers import Tokenizer

Ids = tuple[int, ...]
Around = tuple[int | None, int | None]
_NORMALISATIONS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("lower case", str.lower),
    ("Unicode's form NFKC", lambda text: unicodedata.normalize("NFKC", text)),
    ("Unicode's form NFC", lambda text: unicodedata.normalize("NFC", text)),
    ("without accents", lambda text: "".join(c for c in unicodedata.normalize("NFD", text) if not _is_mark(c))),
    ("single spaces, and none at the ends", lambda text: " ".join(text.split())),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Contradiction:
    """One thing that differs: what kind it is, a sentence, and how many of the texts show it."""

    kind: str
    message: str
    texts: int = 0


def diagnose(family: Family, tokenizer: Tokenizer, *, bos_wanted: bool = False) -> Iterator[Contradiction]:
    """What ``tokenizer`` does otherwise than ``family``, the most telling first.

    Args:
        bos_wanted: whether the tokenizer is one that puts the family's BOS before every text.
    """
    expected = dict(family.cases)
    actual = {text: ids_of(tokenizer, text) for text in expected}
    around = around_every_text(actual)
    actual = {text: unwrapped(ids, around) for text, ids in actual.items()}
    yield from _around(family, tokenizer, around, bos_wanted)
    wrong = [text for text, ids in expected.items() if ids != actual[text]]
    if not wrong:
        return
    found = [*_leading_space(expected, actual), *_normalised(tokenizer, expected, actual)]
    if not found or _is_another_vocabulary(tokenizer, expected):
        found = [_vocabulary(tokenizer, expected) if _is_another_vocabulary(tokenizer, expected) else _merges()]
    example = min(wrong, key=len)
    for one in found:
        yield dataclasses.replace(one, message=f"{one.message}; {_shown(example, expected, actual)}", texts=len(wrong))


def ids_of(tokenizer: Tokenizer, text: str) -> Ids:
    """The ids of one text."""
    return tuple(tokenizer.encode_batch([text]).ids.tolist())


def around_every_text(actual: Mapping[str, Ids]) -> Around:
    """The id that stands before every text, and the one behind; the empty text has to be among them."""
    before = _common(ids[:1] for ids in actual.values()) if actual[""] else None
    after = _common(ids[-1:] for ids in actual.values()) if len(actual[""]) > (before is not None) else None
    return before, after


def unwrapped(ids: Ids, around: Around) -> Ids:
    """The ids without those two."""
    before, after = around
    return ids[before is not None : len(ids) - (after is not None)]


def _common(ends: Iterator[Ids]) -> int | None:
    found = set(ends)
    return next(iter(found))[0] if len(found) == 1 and found != {()} else None


def _around(family: Family, tokenizer: Tokenizer, around: Around, bos_wanted: bool) -> Iterator[Contradiction]:
    before, after = around
    bos = family.special.get("bos")
    if bos_wanted and bos is not None and before != bos.id:
        what = "nothing" if before is None else f"id {before} ({tokenizer.piece(before)})"
        yield Contradiction("BOS missing", f"{family.name} begins every text with BOS, id {bos.id}, and here is {what}")
    elif before is not None and not bos_wanted:
        name = "BOS" if bos is not None and before == bos.id else tokenizer.piece(before)
        yield Contradiction("BOS added", f"id {before} ({name}) is put before every text, and nothing is in the family")
    if after is not None:
        message = f"id {after} ({tokenizer.piece(after)}) is put behind every text"
        yield Contradiction("EOS added", message)


def _leading_space(expected: Mapping[str, Ids], actual: Mapping[str, Ids]) -> Iterator[Contradiction]:
    """Whether a space is put before texts, or taken away, against the rule of the family."""
    pairs = [(text, f" {text}") for text in expected if text.strip() and f" {text}" in expected]
    pairs = [(bare, spaced) for bare, spaced in pairs if expected[bare] != expected[spaced]]
    if pairs and all(actual[bare] == expected[spaced] for bare, spaced in pairs):
        yield Contradiction("leading space", "a space is put before every text, and the family puts none")
    elif pairs and all(actual[spaced] == expected[bare] for bare, spaced in pairs):
        differs = any(actual[bare] != expected[bare] for bare, _ in pairs if not bare.startswith(" "))
        does = "no space is put before a text, and the family puts one" if differs else "a leading space is taken away"
        yield Contradiction("leading space", does)


def _normalised(
    tokenizer: Tokenizer, expected: Mapping[str, Ids], actual: Mapping[str, Ids]
) -> Iterator[Contradiction]:
    """A change of texts that the tokenizer does not see, and the family does."""
    for name, change in _NORMALISATIONS:
        changed = [text for text in expected if change(text) != text and expected[text] != actual[text]]
        every = [text for text in expected if change(text) != text]
        if changed and all(ids_of(tokenizer, change(text)) == ids_of(tokenizer, text) for text in every):
            yield Contradiction("normalisation", f"texts are normalised first, to {name}, and the family's are not")
            return


def _is_another_vocabulary(tokenizer: Tokenizer, expected: Mapping[str, Ids]) -> bool:
    """Whether the ids of the family stand for other texts here. Spaces at the ends are the matter of another rule."""
    return any(_decoded(tokenizer, ids).strip() != text.strip() for text, ids in expected.items())


def _decoded(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    return tokenizer.decode(ids) if all(id < tokenizer.vocab_size for id in ids) else "\0"


def _vocabulary(tokenizer: Tokenizer, expected: Mapping[str, Ids]) -> Contradiction:
    text, ids = next((text, ids) for text, ids in expected.items() if _decoded(tokenizer, ids).strip() != text.strip())
    means = repr(_decoded(tokenizer, ids)) if max(ids) < tokenizer.vocab_size else "beyond the vocabulary"
    message = f"another vocabulary: {' '.join(map(str, ids[:8]))}, {text[:24]!r} in the family, is {means[:60]} here"
    return Contradiction("vocabulary", message)


def _merges() -> Contradiction:
    rules = "another order of merges, or another rule for numbers, spaces or punctuation"
    return Contradiction("merges", f"the vocabulary is the same, and texts are cut otherwise: {rules}")


def _shown(text: str, expected: Mapping[str, Ids], actual: Mapping[str, Ids]) -> str:
    wanted, given = (" ".join(map(str, side[text][:8])) or "nothing" for side in (expected, actual))
    return f"{text[:40]!r} is {given} here and {wanted} in the family"


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter) == "Mn"
