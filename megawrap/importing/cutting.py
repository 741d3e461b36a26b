"""Parts of a text as the shell cuts them: ``${X%%.*}``, ``${X##*/}``, ``${X/a/b}``, ``${X,,}``."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

_PATTERN_SIGNS = re.compile(r"[*?\[\\]")
_CASES: dict[str, Callable[[str], str]] = {
    ",,": str.lower,
    "^^": str.upper,
    ",": lambda text: text[:1].lower() + text[1:],
    "^": lambda text: text[:1].upper() + text[1:],
}


def cut(text: str, sign: str, word: str) -> str | None:
    """What a ``sign`` (# ## % %% / // , ,, ^ ^^) with ``word`` behind it leaves of ``text``; ``None`` where that is not
    understood here."""
    if sign in ("#", "##"):
        ends = range(len(text) + 1) if sign == "#" else range(len(text), -1, -1)
        return next((text[end:] for end in ends if fnmatchcase(text[:end], word)), text)
    if sign in ("%", "%%"):
        starts = range(len(text), -1, -1) if sign == "%" else range(len(text) + 1)
        return next((text[:start] for start in starts if fnmatchcase(text[start:], word)), text)
    if sign in _CASES:
        return _CASES[sign](text) if not word else None
    old, _, new = word.partition("/")
    if not old or _PATTERN_SIGNS.search(old):
        return None
    return text.replace(old, new, 1 if sign == "/" else -1)
