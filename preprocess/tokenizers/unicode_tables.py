"""Which texts hold code points that two libraries may sort into different classes.

Encoders cut text by classes of Unicode (letters, numbers, marks). Libraries carry tables of different versions, so
what they disagree on is what one of them does not know: gigatoken 0.10.0 and tokenizers 0.23.3 differ in 4657 code
points for GPT-2 and Qwen 2, all without a meaning in Unicode 15 (every code point was tried in eight surroundings).
So a text is taken to be safe when all its code points had one in Unicode 15.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_FILE = Path(__file__).with_name("unassigned.json")
_ALL = 0x110000


@functools.cache
def _is_unassigned() -> npt.NDArray[np.bool_]:
    table = np.zeros(_ALL, dtype=np.bool_)
    content: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    for first, last in content["ranges"]:
        table[int(first, 16) : int(last, 16) + 1] = True
    return table


def doubtful(texts: Sequence[str]) -> list[int]:
    """Places of the texts that hold a code point which Unicode 15 does not assign."""
    # All at once first: texts are short, and hardly ever doubtful.
    others = [(place, text) for place, text in enumerate(texts) if not text.isascii()]
    if not _has_unassigned("".join(text for _, text in others)):
        return []
    return [place for place, text in others if _has_unassigned(text)]


def _has_unassigned(text: str) -> bool:
    points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    return bool(_is_unassigned().take(points, mode="clip").any())
