"""Text to token files, as ``launch`` would do it first."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import orjson

from megawrap.cli.verbs import common
from megawrap.launchers import one_process
from megawrap.steps import Step, preprocess_words

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation

HELP = "Tokenize text into Megatron's .bin/.idx: preprocess data.input=FILE data.output_prefix=P tokenizer=..."


def configure(parser: argparse.ArgumentParser) -> None:
    """``preprocess`` has no options of its own."""


def run(invocation: Invocation) -> int:
    """Tokenize; see ``megawrap.preprocess``."""
    from megawrap.run.observer import Observer
    from megawrap.run.watch import run_alone

    options = invocation.options
    config = common.composed(options).config
    words = preprocess_words(config)
    command = one_process(Step("preprocess", ("-m", "megawrap.preprocess", *words), "one"), config.launcher)
    how: dict[str, Any] = {"grace_seconds": config.monitor.grace_seconds, "reads": config.data.input == "-"}
    if options.json:
        done = run_alone(command, Observer(), **how)
        sys.stdout.write(orjson.dumps({**done, "findings": []}).decode() + "\n")
        return 0
    from megawrap.cli.live import Live

    with Live() as live:
        run_alone(command, live, **how)
    return 0
