"""The one way to a terminal: no markup, so that brackets in values stay what they are, and no emoji names."""

from __future__ import annotations

from rich.console import Console


def console(*, stderr: bool = False) -> Console:
    """A console for people."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)
