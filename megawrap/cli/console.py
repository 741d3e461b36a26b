"""The one way to a terminal: no markup, so that brackets in values stay what they are, and no emoji names."""

from __future__ import annotations

import os
import sys

from rich.console import Console

# Columns of what goes into a pipe or a file, which has no width of its own: Rich would fold at 80.
_UNFOLDED = 200


def console(*, stderr: bool = False) -> Console:
    """A console for people. COLUMNS sets its width; otherwise it is that of the terminal, if there is one."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _UNFOLDED
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)
