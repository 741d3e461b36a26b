"""``$(echo $X | cut -d= -f1)``: a command substitution that is plain text work; scripts take ``KEY=VALUE`` arguments
apart with it."""

from __future__ import annotations

import re

_ECHO_CUT = re.compile(
    r"""(?:\$\(|`)\s*echo\s+(?P<quote>"?)\$\{?(?P<name>[A-Za-z_]\w*|\d)\}?(?P=quote)\s*\|\s*cut\s+
    (?:-f\s*(?P<first>[1-9]\d*)\s+-d\s*(?P<mark>'.'|"."|[\w=:,./+@%-])|
       -d\s*(?P<mark2>'.'|"."|[\w=:,./+@%-])\s+-f\s*(?P<second>[1-9]\d*))\s*(?:\)|`)""",
    re.VERBOSE,
)


def echoed(text: str) -> str | None:
    """The variable that ``text`` cuts a field from; ``None`` where it is another command."""
    found = _ECHO_CUT.fullmatch(text)
    return found["name"] if found is not None else None


def echo_cut(text: str, value: str) -> str | None:
    """What ``text`` gives when the variable is ``value``; ``None`` where that needs running. A line without the mark is
    given whole, as cut(1) does."""
    found = _ECHO_CUT.fullmatch(text)
    # What echo makes of options, escapes and file patterns depends on the shell and the folder.
    if found is None or value.startswith("-") or re.search(r"[\n\\*?\[]", value):
        return None
    line = value if found["quote"] else " ".join(value.split())
    mark = (found["mark"] or found["mark2"]).strip("'\"")
    parts, at = line.split(mark), int(found["first"] or found["second"])
    if len(parts) == 1:
        return line
    return parts[at - 1] if at <= len(parts) else ""
