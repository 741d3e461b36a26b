"""Plan, check, run, watch to the end."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import orjson

from megawrap.cli.verbs import common
from megawrap.launchers import commands

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation
    from megawrap.run.launch import Outcome

HELP = "Plan, check, run and watch to the end (the default verb)."


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``launch``."""
    parser.add_argument("--dry-run", action="store_true", help="show the plan and stop")


def run(invocation: Invocation) -> int:
    """Run the plan; the exit code says how it ended."""
    options = invocation.options
    plan = common.planned(options)
    common.refuse_errors(plan)
    started = commands(plan)
    if not options.json:
        from megawrap.cli.show_plan import show

        show(plan, started)
    if options.dry_run:
        return 0
    from megawrap.run.launch import launch
    from megawrap.run.observer import Observer
    from megawrap.run.ready import require_resources

    require_resources(plan)
    if options.json:
        _print_json(launch(plan, started, Observer()), plan.composed.config.train.seq_length or 0)
        return 0
    from megawrap.cli.live import Live
    from megawrap.cli.show_summary import show_summary
    from megawrap.run.summary import summarise

    with Live(plan.composed.config.train.seq_length or 0) as live:
        outcome = launch(plan, started, live)
    show_summary(summarise(outcome, plan.composed.config.train.seq_length or 0))
    return 0


def _print_json(outcome: Outcome, seq_length: int) -> None:
    from megawrap.run.summary import summarise

    findings = [finding.as_dict() for finding in outcome.findings]
    answer = {"exit_code": 0, **summarise(outcome, seq_length).as_dict(), "findings": findings}
    sys.stdout.write(orjson.dumps(answer).decode() + "\n")
