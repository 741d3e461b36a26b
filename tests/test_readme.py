"""The README is true: its tour runs, and says what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from megawrap.cli import main
from megawrap.config.compose import groups

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (?:\.venv/bin/)?python -m megawrap (.*)$", README.replace("\\\n", " "), re.MULTILINE)
EXIT_CODES = {"plan model=llama3_70b": 0, "explain": 0, "plan model=llama2_7b parallel.tp=5": 2}


@pytest.mark.parametrize("start", EXIT_CODES)
def test_the_tour(start, capsys):
    command = next(command for command in COMMANDS if command.startswith(start))
    assert main(shlex.split(command, comments=True)) == EXIT_CODES[start]
    capsys.readouterr()


def test_the_error_that_it_shows_is_the_error_that_appears(capsys):
    shown = re.search(r"^    error MW103.*(?:\n        .*)+", README, re.MULTILINE)
    assert shown is not None
    main(["plan", "model=llama2_7b", "parallel.tp=5"])
    appeared = "\n".join(line.rstrip() for line in capsys.readouterr().err.splitlines())
    assert "\n".join(line.removeprefix("    ") for line in shown[0].splitlines()) in appeared


def test_every_word_of_a_command_is_known():
    """Groups and choices in the commands exist, so that a renamed preset does not leave a dead example behind."""
    known = groups()
    for command in COMMANDS:
        for word in shlex.split(command, comments=True):
            group, _, choice = word.partition("=")
            if group in known:
                assert choice in known[group], command


def test_every_group_is_described():
    for group in groups():
        assert f"`{group}`" in README, group
