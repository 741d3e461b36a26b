"""docs/import.md is true: every command on it prints what stands below it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from megawrap.cli import main

PAGE = (Path(__file__).parents[2] / "docs/import.md").read_text(encoding="utf-8")
# An indented block that begins with a prompt: the command, with its continued lines, and what it prints.
SHOWN = re.findall(r"^    \$ megawrap ((?:.*\\\n)*.*)\n((?:(?:    .*)?\n)*)", PAGE, re.MULTILINE)


@pytest.fixture
def _page(tmp_path, monkeypatch):
    """The terminal and the script of the page."""
    monkeypatch.setenv("COLUMNS", "112")
    monkeypatch.chdir(tmp_path)
    Path("train.sh").write_text(block("bash"), encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def printed(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    main(shlex.split(command.replace("\\\n", " ")))
    output = capsys.readouterr()
    return [line.rstrip() for line in (output.out + output.err).rstrip().splitlines()]


@pytest.mark.usefixtures("_page")
@pytest.mark.parametrize("at", range(len(SHOWN)))
def test_a_command_prints_what_the_page_shows(at, capsys):
    command, shown = SHOWN[at]
    assert printed(command, capsys) == [line[4:] for line in shown.rstrip().splitlines()]


@pytest.mark.usefixtures("_page")
def test_the_file_that_the_page_shows(capsys):
    printed(SHOWN[0][0], capsys)
    assert Path("mine/imported.yaml").read_text(encoding="utf-8") == block("yaml")


@pytest.mark.usefixtures("_page")
@pytest.mark.parametrize("at", [at for at in range(len(SHOWN)) if "--output" in SHOWN[at][0]])
@pytest.mark.parametrize("change", [[], ["parallel.tp=4"]])
def test_what_the_page_imports_can_be_planned(at, change, capsys):
    following = printed(SHOWN[at][0], capsys)[-1].removeprefix("next: megawrap ")
    assert main([*shlex.split(following), *change]) == 0


def test_the_page_shows_what_it_speaks_of():
    words = [shlex.split(command.replace("\\\n", " "))[0] for command, _ in SHOWN]
    assert words == ["import", "import", "import", "diff"]
