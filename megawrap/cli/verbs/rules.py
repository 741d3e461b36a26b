"""Everything that a plan is checked for."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import orjson

from megawrap.catalog import catalog
from megawrap.errors import ConfigError, Finding, nearest

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation

HELP = "List every check of a plan: what must be so, where Megatron checks it, and for which releases."


def configure(parser: argparse.ArgumentParser) -> None:
    """``rules`` has no options of its own: its words are ids, or what they start with."""


def run(invocation: Invocation) -> int:
    """List the rules whose id starts with one of the words; all without words.

    Raises:
        ConfigError: when a word is the start of none.
    """
    words = invocation.overrides
    rows = [row for id, row in catalog().items() if not words or id.startswith(words)]
    unknown = [word for word in words if not any(id.startswith(word) for id in catalog())]
    if unknown:
        raise ConfigError([_unknown(word) for word in unknown])
    if invocation.options.json:
        sys.stdout.write(orjson.dumps({"rules": rows, "findings": []}).decode() + "\n")
        return 0
    from megawrap.cli.show_rules import show

    show(rows)
    return 0


def _unknown(word: str) -> Finding:
    message = f"{word}: no check has an id that starts so"
    return Finding(id="MW002", keys=(word,), message=message, nearest=nearest(word, catalog()))
