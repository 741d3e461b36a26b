"""Lines of JSON to the texts in them, with exact reasons for lines that hold none."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import orjson

_KEYS_SHOWN = 5


class BadLine(Exception):
    """A line that cannot be used. ``offset`` is the byte of the chunk that the line starts at."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(offset, reason)
        self.offset = offset
        self.reason = reason


class _Unusable(Exception):
    """The reason why a line cannot be used."""


@dataclasses.dataclass(slots=True)
class Documents:
    """The texts of some lines, one document a line.

    ``counts[i]`` texts belong to document ``i``: one, or as many as its list has. ``offsets[i]`` is the byte that its
    line starts at. ``blank`` counts lines with nothing on them, which are no documents.
    """

    texts: list[str] = dataclasses.field(default_factory=list)
    counts: list[int] = dataclasses.field(default_factory=list)
    offsets: list[int] = dataclasses.field(default_factory=list)
    blank: int = 0

    def offset_of_text(self, index: int) -> int:
        """Start of the line that holds text number ``index``."""
        for count, offset in zip(self.counts, self.offsets, strict=True):
            index -= count
            if index < 0:
                return offset
        raise IndexError("there are fewer texts")


def parse(data: bytes, key: str) -> Documents:
    """The documents in ``data``, which is made of whole lines. The text is under ``key``.

    Raises:
        BadLine: for the first line that is not an object with a string, or a list of strings, under ``key``.
    """
    found = Documents()
    offset = 0
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for line in lines:
        if not line or line.isspace():
            found.blank += 1
        else:
            _add(found, line, key, offset)
        offset += len(line) + 1
    return found


def _add(found: Documents, line: bytes, key: str, offset: int) -> None:
    try:
        texts = _texts(line, key)
    except _Unusable as unusable:
        raise BadLine(offset, str(unusable)) from None
    found.texts += texts
    found.counts.append(len(texts))
    found.offsets.append(offset)


def _texts(line: bytes, key: str) -> list[str]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        # Python's own parser decides, as in Megatron: it takes NaN, huge numbers and lone surrogates elsewhere.
        return _without_surrogates(_texts_of(_loads(line), key), key)
    return _texts_of(value, key)


def _loads(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _Unusable(f"not valid UTF-8: byte 0x{line[error.start]:02x} at byte {error.start} of the line") from None
    except json.JSONDecodeError as error:
        raise _Unusable(f"not valid JSON: {error.msg} at column {error.colno}") from None
    except ValueError as error:
        raise _Unusable(f"not valid JSON: {error}") from None
    except RecursionError:
        raise _Unusable("not usable JSON: it is nested too deeply") from None


def _texts_of(value: Any, key: str) -> list[str]:
    if not isinstance(value, dict):
        raise _Unusable(f"an object with the key {json.dumps(key)} is needed, and this is {_kind(value)}")
    if key not in value:
        raise _Unusable(f"there is no key {json.dumps(key)}; {_keys(value)}")
    text = value[key]
    if isinstance(text, str):
        return [text]
    if not isinstance(text, list):
        raise _Unusable(f"{json.dumps(key)} is {_kind(text)}, and a string or a list of strings is needed")
    for item in text:
        if not isinstance(item, str):
            raise _Unusable(f"{json.dumps(key)} is a list that holds {_kind(item)}, and only strings can be tokenized")
    return text


def _without_surrogates(texts: list[str], key: str) -> list[str]:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(text[error.start]):04x}"
            raise _Unusable(
                f"{json.dumps(key)} holds {half}, half of a surrogate pair, which is no character"
            ) from None
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
