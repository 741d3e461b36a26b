"""What the source tells, and what it does not."""

from __future__ import annotations

import enum
import math
from typing import Any

# The value of a name that the source does not tell.
UNTOLD = type("Untold", (), {"__repr__": lambda _: "untold"})()


class Unknown(Exception):
    """The source does not tell the value."""


def plain(value: Any) -> Any:
    """As JSON has it: a member by its name, the word that the parser takes; infinity as the word that argparse
    converts."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple | set | range):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise Unknown(repr(value))
