"""Show what would run. No side effects, no GPU, no torch."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import orjson

from megawrap.cli import render
from megawrap.cli.verbs import common
from megawrap.errors import errors
from megawrap.launchers import commands
from megawrap.run.record import plan_as_dict

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation

HELP = "Show what would run: arguments, environment, steps, and everything that is wrong with them."
FORMATS = ("rich", "argv", "shell", "json")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``plan``."""
    parser.add_argument("--format", choices=FORMATS, default="rich", help="argv: a word a line; shell: a script")
    parser.add_argument("--verify", action="store_true", help="also ask the target Megatron itself: 10 to 30 seconds")
    parser.add_argument("--all", action="store_true", help="also the arguments that say Megatron's default")


def run(invocation: Invocation) -> int:
    """Print the plan; exit code 2 when something in it is wrong."""
    options = invocation.options
    plan = common.planned(options)
    if options.verify:
        from megawrap.verify import verified

        plan = verified(plan)
        if not {"MW022", "MW023"} & {finding.id for finding in plan.findings}:
            render.note(f"{plan.target.name} was asked, and accepts it")
    started = commands(plan)
    if options.json or options.format == "json":
        shown = plan_as_dict(plan, started, everything=options.all)
        sys.stdout.write(orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode() + "\n")
        return 2 if errors(plan.findings) else 0
    common.refuse_errors(plan)
    if options.format == "argv":
        sys.stdout.writelines(f"{word}\n" for word in plan.compiled.argv(everything=options.all))
    elif options.format == "shell":
        sys.stdout.write("#!/bin/sh\nset -e\n" + "".join(f"{command.shell()}\n" for command in started))
    else:
        from megawrap.cli.show_plan import show

        show(plan, started, everything=options.all)
    return 0
