"""Lines of JSON to the texts in them, with exact reasons for lines that hold none."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

_KEYS_SHOWN = 5


@dataclasses.dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be used: its number among the lines, the byte it starts at, and why.

    ``kind`` is the reason without its details.
    """

    number: int
    offset: int
    kind: str
    reason: str


class _Unusable(Exception):
    """Why a line cannot be used: the kind of reason, and the reason."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind = kind
        self.reason = reason


@dataclasses.dataclass(slots=True)
class Texts:
    """The texts under one key: ``counts[i]`` of them belong to document ``i``, one or as many as its list has."""

    texts: list[str] = dataclasses.field(default_factory=list)
    counts: list[int] = dataclasses.field(default_factory=list)

    def document_of(self, index: int) -> int:
        """The document that text number ``index`` belongs to."""
        for document, count in enumerate(self.counts):
            index -= count
            if index < 0:
                return document
        raise IndexError("there are fewer texts")

    def without(self, documents: Mapping[int, Any]) -> Texts:
        """Those of all other documents."""
        left = Texts()
        at = 0
        for document, count in enumerate(self.counts):
            if document not in documents:
                left.texts += self.texts[at : at + count]
                left.counts.append(count)
            at += count
        return left


@dataclasses.dataclass(slots=True)
class Documents:
    """What some lines hold, one document a line.

    ``keys[k]`` are the texts under key ``k``. ``lines[i]`` is the number of the line of document ``i``, ``offsets[i]``
    the byte it starts at. ``blank`` counts lines with nothing on them, which are no documents; ``bad`` are those that
    cannot be used.
    """

    keys: tuple[Texts, ...]
    lines: list[int] = dataclasses.field(default_factory=list)
    offsets: list[int] = dataclasses.field(default_factory=list)
    blank: int = 0
    bad: list[BadLine] = dataclasses.field(default_factory=list)

    def without(self, unusable: Mapping[int, tuple[str, str]]) -> Documents:
        """The same, with some documents become bad lines: their numbers to the kind of reason and the reason."""
        kept = [document for document in range(len(self.lines)) if document not in unusable]
        more = [BadLine(self.lines[document], self.offsets[document], *why) for document, why in unusable.items()]
        return Documents(
            keys=tuple(texts.without(unusable) for texts in self.keys),
            lines=[self.lines[document] for document in kept],
            offsets=[self.offsets[document] for document in kept],
            blank=self.blank,
            bad=sorted([*self.bad, *more], key=lambda bad: bad.number),
        )


def parse(data: bytes, keys: Sequence[str]) -> Documents:
    """The documents in ``data``, which is made of whole lines. A document has a string, or a list of strings, under
    each of ``keys``; lines that hold no such object are told in ``bad``."""
    found = Documents(tuple(Texts() for _ in keys))
    offset = 0
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines):
        if not line or line.isspace():
            found.blank += 1
        else:
            try:
                _add(found, _texts(line, keys))
            except _Unusable as unusable:
                found.bad.append(BadLine(number, offset, unusable.kind, unusable.reason))
            else:
                found.lines.append(number)
                found.offsets.append(offset)
        offset += len(line) + 1
    return found


def _add(found: Documents, texts: list[list[str]]) -> None:
    for of_key, of_line in zip(found.keys, texts, strict=True):
        of_key.texts += of_line
        of_key.counts.append(len(of_line))


def _texts(line: bytes, keys: Sequence[str]) -> list[list[str]]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        # Python's own parser decides, as in Megatron: it takes NaN, huge numbers and lone surrogates elsewhere.
        value = _loads(line)
        return [_without_surrogates(_texts_of(value, key), key) for key in keys]
    return [_texts_of(value, key) for key in keys]


def _loads(line: bytes) -> Any:
    kind = "not valid JSON"
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        place = f"byte 0x{line[error.start]:02x} at byte {error.start} of the line"
        raise _Unusable("not valid UTF-8", f"not valid UTF-8: {place}") from None
    except json.JSONDecodeError as error:
        raise _Unusable(kind, f"not valid JSON: {error.msg} at column {error.colno}") from None
    except ValueError as error:
        raise _Unusable(kind, f"not valid JSON: {error}") from None
    except RecursionError:
        raise _Unusable(kind, "not usable JSON: it is nested too deeply") from None


def _texts_of(value: Any, key: str) -> list[str]:
    if not isinstance(value, dict):
        reason = f"an object with the key {json.dumps(key)} is needed, and this is {_kind(value)}"
        raise _Unusable("not an object", reason)
    if key not in value:
        raise _Unusable("no such key", f"there is no key {json.dumps(key)}; {_keys(value)}")
    text = value[key]
    if isinstance(text, str):
        return [text]
    if not isinstance(text, list):
        raise _of_other_type(f"{json.dumps(key)} is {_kind(text)}, and a string or a list of strings is needed")
    for item in text:
        if not isinstance(item, str):
            held = f"{json.dumps(key)} is a list that holds {_kind(item)}"
            raise _of_other_type(f"{held}, and only strings can be tokenized")
    return text


def _of_other_type(reason: str) -> _Unusable:
    return _Unusable("not a string", reason)


def _without_surrogates(texts: list[str], key: str) -> list[str]:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(text[error.start]):04x}"
            reason = f"{json.dumps(key)} holds {half}, half of a surrogate pair, which is no character"
            raise _Unusable("half a surrogate pair", reason) from None
    return texts


def _keys(value: dict[str, Any]) -> str:
    if not value:
        return "the object is empty"
    shown = ", ".join(json.dumps(key, ensure_ascii=False) for key in list(value)[:_KEYS_SHOWN])
    more = len(value) - _KEYS_SHOWN
    return f"this line has {shown}" + (f" and {more} more" if more > 0 else "")


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")
