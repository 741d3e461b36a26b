"""Where two tokenizers differ, on any texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from megawrap.errors import Finding
from megawrap.preprocess.golden.diagnose import Around, Ids, around_every_text, ids_of, unwrapped
from megawrap.preprocess.tokenizers import Tokenizer

_SHOWN = 4
_PROBES = ("", "a", "1 b", "\n")


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """A text with different ids; ``at`` is the place of the first that differs, pieces are those around it."""

    text: str
    at: int
    ids: tuple[Ids, Ids]
    pieces: tuple[tuple[str, ...], tuple[str, ...]]


@dataclasses.dataclass(slots=True)
class Comparison:
    """Two tokenizers on some texts."""

    vocab_sizes: tuple[int, int]
    eods: tuple[int | None, int | None]
    engines: tuple[str, str]
    around: tuple[Around, Around]
    """Ids before and behind every text. They are told once, and left out of the differences."""
    texts: int = 0
    tokens: tuple[int, int] = (0, 0)
    differing: int = 0
    differences: list[Difference] = dataclasses.field(default_factory=list)
    """The first of them."""

    def findings(self) -> Iterator[Finding]:
        """What differs."""
        if self.differing:
            one = self.differences[0]
            message = f"{self.differing} of {self.texts} texts have other ids: {one.text[:40]!r} from id {one.at} on"
            yield Finding(id="MW690", message=message)
        if self.around[0] != self.around[1]:
            first, second = (" and ".join(_put(*around)) or "nothing" for around in self.around)
            yield Finding(id="MW690", message=f"around every text: {first} in the first, {second} in the second")
        for name, (a, b) in (("number of ids", self.vocab_sizes), ("id that ends a document", self.eods)):
            if a != b:
                yield Finding(id="MW690", message=f"the {name} is {a} in the first and {b} in the second")


def compare(first: Tokenizer, second: Tokenizer, texts: Iterable[str], *, limit: int = 10) -> Comparison:
    """Both tokenizers on ``texts``, with the first ``limit`` differences."""
    around = _around(first), _around(second)
    found = Comparison(
        (first.vocab_size, second.vocab_size), (first.eod, second.eod), (first.engine, second.engine), around
    )
    for text in texts:
        a, b = unwrapped(ids_of(first, text), around[0]), unwrapped(ids_of(second, text), around[1])
        found.texts += 1
        found.tokens = (found.tokens[0] + len(a), found.tokens[1] + len(b))
        if a != b:
            found.differing += 1
            if len(found.differences) < limit:
                found.differences.append(_difference(first, second, text, a, b))
    return found


def _around(tokenizer: Tokenizer) -> Around:
    return around_every_text({text: ids_of(tokenizer, text) for text in _PROBES})


def _put(before: int | None, after: int | None) -> Iterator[str]:
    yield from [f"id {before} before"] if before is not None else []
    yield from [f"id {after} behind"] if after is not None else []


def _difference(first: Tokenizer, second: Tokenizer, text: str, a: Ids, b: Ids) -> Difference:
    same = (at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    at = next(same, min(len(a), len(b)))
    part = slice(max(0, at - 1), at + _SHOWN)
    return Difference(
        text, at, (a[part], b[part]), (tuple(map(first.piece, a[part])), tuple(map(second.piece, b[part])))
    )
