"""Text to token files, as ``launch`` would do it first."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from megawrap.cli.verbs import common
from megawrap.steps import preprocess_words

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation

HELP = "Tokenize text into Megatron's .bin/.idx: preprocess data.input=FILE data.output_prefix=P tokenizer=..."


def configure(parser: argparse.ArgumentParser) -> None:
    """``preprocess`` has no options of its own."""


def run(invocation: Invocation) -> int:
    """Tokenize; see ``megawrap.preprocess``."""
    from megawrap.cli.preprocessing import tokenize

    options = invocation.options
    config = common.composed(options).config
    return tokenize(preprocess_words(config), as_json=options.json)
