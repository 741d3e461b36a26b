"""The training command in a shell script. The script is read, never run; what only running would tell is listed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from megawrap.errors import ConfigError, Finding
from megawrap.importing.command import Command, Unplaced
from megawrap.importing.control import Leave
from megawrap.importing.grammar import statements
from megawrap.importing.lexer import without_marks
from megawrap.importing.pieces import Unreadable
from megawrap.importing.shell import Shell, Start
from megawrap.importing.started import read_command
from megawrap.importing.values import Variables


def read_script(file: Path, given: Mapping[str, str], arguments: Sequence[str] = ()) -> Command:
    """The training command of ``file``. ``given`` are variables that the script would find set, ``arguments`` its own.

    Raises:
        ConfigError: when the file cannot be read, or starts no training.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise ConfigError(Finding(id="MW033", keys=("--script",), message=f"{file} cannot be read: {reason}")) from None
    return read_text(text, str(file), given, arguments)


def read_text(text: str, source: str, given: Mapping[str, str], arguments: Sequence[str] = ()) -> Command:
    """The training command of a script's ``text``; ``source`` is what the script is called.

    Raises:
        ConfigError: when it cannot be split into words, or starts no training.
    """
    shell, end = Shell(Variables(dict(given), arguments)), None
    try:
        shell.run(statements(without_marks(text)))
    except Leave as leave:
        end = leave
    except RecursionError:
        message = f"{source} cannot be read: it is nested too deeply"
        raise ConfigError(Finding(id="MW034", message=message)) from None
    except Unreadable as problem:
        message = f"{source}:{problem.line}: {problem}"
        raise ConfigError(Finding(id="MW034", message=message)) from None
    if not shell.starts:
        raise ConfigError(_no_training(source, shell, end))
    return _command(source, shell)


def _command(source: str, shell: Shell) -> Command:
    chosen = max(shell.starts, key=lambda one: (_is_training(one), _flags(one)))
    command = read_command(chosen.words, source, chosen.environment)
    reason = "the script starts another training here; one is imported"
    more = [
        Unplaced.of("script", one.words[:1], reason) for one in shell.starts if one is not chosen and _is_training(one)
    ]
    unplaced = (*command.unplaced, *chosen.unplaced, *shell.unplaced, *more, *_assumed(shell))
    return dataclasses.replace(command, unplaced=unplaced)


def _is_training(start: Start) -> bool:
    return any("pretrain" in word.text and word.text.endswith(".py") for word in start.words)


def _flags(start: Start) -> int:
    return sum(word.text.startswith("--") for word in start.words)


def _assumed(shell: Shell) -> list[Unplaced]:
    """What was taken as unset because nothing sets it."""
    return [
        Unplaced("script", f"${name}", f"{_why(name)}: {_give(name)}", line, needed=False)
        for name, line in shell.variables.assumed.items()
    ]


def _why(name: str) -> str:
    return (
        "set nowhere in the script, so taken as unset"
        if name.isidentifier()
        else "the script is read without arguments"
    )


def _give(name: str) -> str:
    return f"--set {name}=VALUE" if name.isidentifier() else "give its arguments after --"


def _no_training(source: str, shell: Shell, end: Leave | None) -> Finding:
    message = f"{source} starts no training program that can be found without running it"
    if end is not None:
        message += f": it ends on line {end.line}"
    if shell.variables.assumed:
        message += f"; taken as unset: {', '.join(f'${name}' for name in shell.variables.assumed)}"
    if shell.called:
        message += f"; it runs other scripts, which are not read: {', '.join(dict.fromkeys(shell.called))}"
    scripts = [f"--script {script}" for script in dict.fromkeys(shell.called) if "$" not in script]
    nearest = (*map(_give, shell.variables.assumed), *scripts, "megawrap import -- torchrun ... pretrain_gpt.py ...")
    return Finding(id="MW030", message=message, nearest=tuple(dict.fromkeys(nearest))[:4])
