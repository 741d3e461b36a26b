"""Text of a script whose pieces know their line, and whether they are known at all."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from megawrap.importing.command import Word


@dataclasses.dataclass(frozen=True)
class Fragment:
    """Text with the line where it stands; ``problem`` says why it is not known."""

    text: str
    line: int
    problem: str | None = None


Text = tuple[Fragment, ...]
"""A value, or one word: pieces of text that stand side by side."""


def as_word(text: Text) -> Word:
    """A word for the reader of commands."""
    unknown = next((one for one in text if one.problem), None)
    telling = unknown or next((one for one in text if one.text), text[0] if text else None)
    line = telling.line if telling else 0
    return Word(plain(text), line or None, unknown.problem if unknown else None)


def plain(text: Text) -> str:
    """All of it, known or not."""
    return "".join(one.text for one in text)


def joined(fields: Sequence[Text]) -> Iterator[Fragment]:
    """Fields with blanks between them."""
    for position, field in enumerate(fields):
        if position:
            yield Fragment(" ", field[0].line if field else 0)
        yield from field


def split(text: Text) -> Iterator[Text]:
    """Words of an unquoted value: split at blanks."""
    word: list[Fragment] = []
    for fragment in text:
        if fragment.problem is not None:
            word.append(fragment)
            continue
        parts = re.split(r"\s+", fragment.text)
        for position, part in enumerate(parts):
            if position and word:
                yield tuple(word)
                word = []
            if part:
                word.append(dataclasses.replace(fragment, text=part))
    if word:
        yield tuple(word)
