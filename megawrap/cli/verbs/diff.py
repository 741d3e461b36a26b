"""Two configurations, plans, runs or example runs, by effective argument."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import orjson

from megawrap.errors import ConfigError, Finding

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation

HELP = (
    "Compare two by effective argument, environment and layout: diff A B. Each is overrides in one word "
    '("model=llama2_7b parallel=tp2"), a folder written by import, a YAML file, a run directory, a plan as JSON, or '
    "example:NAME, a run of AMD's own scripts."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """``diff`` has no options of its own."""


def run(invocation: Invocation) -> int:
    """Compare; exit code 0 whether or not they differ."""
    words = invocation.options.words
    if len(words) != 2:
        message = f"megawrap diff: it compares two, and there are {len(words)}; overrides go in one quoted word each"
        raise ConfigError(Finding(id="MW008", message=message))
    from megawrap.importing.compare import compare
    from megawrap.importing.sides import side

    found = compare(side(words[0]), side(words[1]))
    if invocation.options.json:
        sys.stdout.write(orjson.dumps(found.as_dict(), option=orjson.OPT_INDENT_2).decode() + "\n")
        return 0
    from megawrap.cli import render
    from megawrap.cli.show_diff import show

    show(found)
    render.findings(found.findings, as_json=False)
    return 0
