"""What the tests of importing share."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from megawrap.importing import Command, Dialect, Imported, Word, import_command, read_command

SCRIPTS = Path(__file__).with_name("scripts")
SHARED = Path(__file__).parents[3] / "shared" / "data"


def shared(name: str) -> Any:
    """A data file that stands beside the repository where the project is developed; the test is skipped elsewhere."""
    file = SHARED / name
    if not file.is_file():
        pytest.skip(f"{name} is not beside the repository")
    return json.loads(file.read_text(encoding="utf-8"))


def command(text: str) -> Command:
    """A command as it would be typed after ``--``, words parted by blanks."""
    return read_command([Word(word) for word in text.split()], "the command line")


@functools.cache
def dialect(release: str = "core-0.16.1") -> Dialect:
    """The dialect of a release, made once."""
    return Dialect.of([f"megatron={release}"])


def imported(text: str, release: str = "core-0.16.1") -> Imported:
    """``text`` imported for a release."""
    return import_command(command(text), dialect(release))


def words_of(arguments: dict[str, Any]) -> list[str]:
    """Words of a Megatron test case, whose arguments are a mapping: ``True`` is a switch, ``[a b]`` are several words,
    and so are numbers parted by blanks."""
    words = []
    for flag, value in arguments.items():
        text = str(value)
        several = re.fullmatch(r"\[(.* .*)\]", text) or re.fullmatch(r"(\d+(?: \d+)+)", text)
        words += [flag] if value is True else [flag, *(several[1].split() if several else [text])]
    return words


def told(one: Imported) -> list[str]:
    """What of an import comes out differently, in words."""
    return [f"{found.argument}: {found.before!r} -> {found.after!r}" for found in one.check()]
