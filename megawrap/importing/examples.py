"""AMD's own example runs, by name: what each script starts with the defaults of a model size."""

from __future__ import annotations

import functools
import shlex
from pathlib import Path
from typing import Any

import orjson

from megawrap.errors import ConfigError, Finding, nearest
from megawrap.importing.command import Command, Word
from megawrap.importing.started import read_command

_DATA = Path(__file__).with_name("examples.json")


def names() -> list[str]:
    """The names of all runs: fork's tree, model family, size, variant."""
    return list(_runs())


def example(name: str) -> tuple[str, Command]:
    """The release and the command of the run called ``name``.

    Raises:
        ConfigError: when there is none.
    """
    known = _runs()
    found = known.get(name, known.get(name.rstrip("Bb")))
    if found is None:
        message = f"example:{name}: there is no such example run of AMD. There are {len(known)}: {', '.join(known)}"
        close = tuple(f"example:{one}" for one in nearest(name, known))
        raise ConfigError(Finding(id="MW036", message=message, nearest=close))
    words = ["torchrun", *shlex.split(found["launcher"]), found["program"], *shlex.split(found["arguments"])]
    command = read_command([Word(word) for word in words], f"example:{name}", found["environment"])
    return found["release"], command


@functools.cache
def _runs() -> dict[str, dict[str, Any]]:
    """Name → run, with what all runs of its script share."""
    found = {}
    for script in orjson.loads(_DATA.read_bytes())["scripts"]:
        for name, run in script["runs"].items():
            found[name] = {
                "release": script["release"],
                "program": script["program"],
                "launcher": run.get("launcher", script.get("launcher", "")),
                "arguments": f"{script['arguments']} {run['arguments']}",
                "environment": {**script["environment"], **run.get("environment", {})},
            }
    return found
