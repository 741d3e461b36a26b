"""An existing training command → a folder of configuration."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from megawrap.errors import ConfigError, Finding

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation
    from megawrap.importing import Command, Difference, Imported

NAME = "import"
HELP = (
    "Turn an existing Megatron command into a folder of configuration: import [megatron=RELEASE] [cluster=NAME] "
    "[OPTIONS] -- torchrun ... pretrain_gpt.py ..., or import --script FILE [-- the script's own arguments]. The "
    "script is read, never run."
)
FOLDER = "imported"
SOURCE = "the command line"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``import``."""
    parser.add_argument("--script", metavar="FILE", help="a shell script that starts the training")
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="a variable that the script finds set"
    )
    parser.add_argument("--output", "-o", metavar="DIR", help=f"the folder to write ({FOLDER})")
    parser.add_argument("--force", action="store_true", help="replace what an import wrote there before")
    parser.add_argument(
        "--check", action="store_true", help="compile it back; exit code 2 when it is not the same. Writes only with -o"
    )


def run(invocation: Invocation) -> int:
    """Import; with ``--check`` exit code 2 when the configuration does not compile back to the command."""
    options = invocation.options
    if options.config_dir:
        message = "megawrap import: it writes a folder of its own (--output); --config-dir has no use here"
        raise ConfigError(Finding(id="MW008", message=message))
    from megawrap.importing import Dialect, import_command

    imported = import_command(_command(invocation), Dialect.of(options.words))
    differences = imported.check() if options.check else None
    output = options.output or (None if options.check else FOLDER)
    following = imported.write(Path(output), force=options.force) if output else None
    if options.json:
        answer = as_dict(imported, output, following, differences)
        sys.stdout.write(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        from megawrap.cli.show_import import show

        show(imported, following, differences)
    return 2 if differences else 0


def as_dict(
    imported: Imported, output: str | None, following: str | None, differences: Sequence[Difference] | None
) -> dict[str, Any]:
    """The documented object (docs/json.md)."""
    checked = {"round_trip": not differences, "differences": [one.as_dict() for one in differences or ()]}
    return {
        "output": output,
        "next": following,
        "megatron": imported.target.release.id,
        "program": imported.command.program,
        "presets": [
            {"group": group, "choice": choice, "differences": imported.differences_of(group)}
            for group, choice in imported.presets.items()
        ],
        "keys": dict(imported.settled.keys),
        "arguments": dict(imported.settled.args),
        "environment": dict(imported.command.environment),
        "not_placed": [one.as_dict() for one in imported.unplaced],
        "releases_having_all": list(imported.arguments.having_all),
        **(checked if differences is not None else {}),
        "findings": [one.finding().as_dict() for one in imported.unplaced if one.needed],
    }


def _command(invocation: Invocation) -> Command:
    from megawrap.importing import Word, read_command, read_script, read_text, starts_text

    script, words = invocation.options.script, invocation.command
    given = dict(_assignment(word) for word in invocation.options.set)
    if script:
        return read_script(Path(script), given, words)
    if not words:
        message = "import what? Either a command after --, or --script FILE"
        raise ConfigError(Finding(id="MW008", message=f"megawrap import: {message}"))
    if len(words) == 1 and len(words[0].split()) > 1:
        # One quoted word: what a shell would make words of.
        return read_text(words[0], SOURCE, given)
    if starts_text(words):
        return read_text(shlex.join(words), SOURCE, given)
    return read_command([Word(word) for word in words], SOURCE, given)


def _assignment(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise ConfigError(Finding(id="MW008", message=f"megawrap import: --set {word}: NAME=VALUE is expected"))
    return name, value
