"""The small language in which data files say when a row applies: ``{"vendor": "amd", "rocm": "<6.4"}``."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from typing import Any

_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_WRITTEN = re.compile(r"(>=|<=|>|<)\s*(\d[\w.+]*)")
KNOWN = "?"


def holds(when: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether every fact named in ``when`` is as it asks: equal to the value, one of a list of them, as a version
    before or after another (``">=2.10"``), or only known (``"?"``). What is not known is none of these."""
    return all(meets(wanted, facts.get(name)) for name, wanted in when.items())


def meets(wanted: Any, actual: Any) -> bool:
    """Whether one value is as asked."""
    if isinstance(wanted, list):
        return any(meets(one, actual) for one in wanted)
    if wanted == KNOWN:
        return actual is not None
    written = _WRITTEN.fullmatch(wanted) if isinstance(wanted, str) else None
    if written is None:
        return bool(wanted == actual)
    numbers = version(actual)
    return bool(numbers) and bool(_COMPARE[written[1]](numbers, version(written[2])))


def version(written: object) -> tuple[int, ...]:
    """``"2.7.0a0+git63"`` → ``(2, 7)``: without what tells builds of a release apart, and trailing zeros. Empty when
    there is no number."""
    found = re.match(r"\D*(\d+(?:\.\d+)*)", str(written).partition("+")[0]) if written is not None else None
    numbers = [int(number) for number in found[1].split(".")] if found else []
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
