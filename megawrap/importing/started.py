"""How a training was started: environment, srun, mpirun, torchrun or plain python, and the program."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from megawrap.errors import ConfigError, Finding
from megawrap.importing.command import Command, Unplaced, Word, needs_running

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
PYTHON = re.compile(r"python[\d.]*")
TORCHRUN_MODULES = ("torch.distributed.run", "torch.distributed.launch")
OUR_PROGRAM = "pretrain_gpt.py"
# Options of each launcher that are followed by no word; --option=word never is.
SWITCHES = {
    "torchrun": {"--standalone", "--no-python", "--no_python", "--run-path", "--run_path", "--use-env", "--use_env"},
    "srun": {"-l", "--label", "-u", "--unbuffered", "--exclusive", "--overlap", "-v", "-Q", "--mpi", "-K"},
    "mpirun": {"--allow-run-as-root", "--oversubscribe", "--tag-output", "-v", "--display-map", "--report-bindings"},
    "python": {"-u", "-O", "-B", "-E", "-s", "-I", "-q"},
    "env": {"-i"},
}
# Options followed by two words.
PAIRS = {"--mca", "-mca", "--gmca"}
NAMES = {"torchrun": "torchrun", "srun": "srun", "mpirun": "mpirun", "mpiexec": "mpirun", "env": "env"}
# Programs that change nothing about what is trained, with the number of words that they take before the next program.
WRAPPERS = {"exec": 0, "nohup": 0, "time": 0, "sudo": 0, "numactl": 0, "stdbuf": 0, "nice": 0, "timeout": 1}


@dataclasses.dataclass
class _Found:
    """What the words before the program say. ``nodes``, ``ranks`` and ``per_node`` as the outer launcher counts."""

    environment: dict[str, str | None] = dataclasses.field(default_factory=dict)
    placed: dict[str, Any] = dataclasses.field(default_factory=dict)
    unplaced: list[Unplaced] = dataclasses.field(default_factory=list)
    ranks: int | None = None
    address: tuple[Word, ...] = ()


def read_command(
    words: Sequence[Word], source: str, environment: Mapping[str, str | None] | None = None
) -> Command:
    """Split a command into what started it and what it trains. Words that begin with a flag are arguments alone.

    Raises:
        ConfigError: when no program is started.
    """
    found = _Found(dict(environment or {}))
    rest = list(words)
    if rest and rest[0].text.startswith("--"):
        return Command(source, found.environment, {}, None, tuple(rest))
    program = _before_program(rest, found)
    if program is None:
        message = f"{source} starts no training program: expected [VAR=VALUE] [torchrun ...] pretrain_gpt.py --flags"
        raise ConfigError(Finding(id="MW030", message=message))
    _finish(found, program)
    return Command(source, found.environment, found.placed, program.text, tuple(rest), tuple(found.unplaced))


def is_launcher(word: Word) -> bool:
    """Whether a training command may begin with ``word``."""
    name = word.text.rpartition("/")[2]
    is_known = name in NAMES or name in WRAPPERS or bool(PYTHON.fullmatch(name))
    return is_known or word.problem is not None or ASSIGNMENT.fullmatch(word.text) is not None


def _before_program(rest: list[Word], found: _Found) -> Word | None:
    while rest:
        word = rest.pop(0)
        name = word.text.rpartition("/")[2]
        if ASSIGNMENT.fullmatch(word.text):
            _assign(word, found)
        elif word.problem is not None:
            found.unplaced.append(Unplaced.of("launcher", [word], needs_running(word.problem)))
        elif name in WRAPPERS:
            _skip_options(rest, WRAPPERS[name])
        elif PYTHON.fullmatch(name):
            module = _python(rest, found)
            if module is not None:
                return module
        elif name in NAMES:
            _options(NAMES[name], rest, found)
        else:
            return word if word.text.endswith(".py") or found.placed else None
    return None


def _assign(word: Word, found: _Found) -> None:
    name, _, value = word.text.partition("=")
    if word.problem is not None:
        found.unplaced.append(Unplaced.of("environment", [word], needs_running(word.problem)))
    else:
        found.environment[name] = value


def _skip_options(rest: list[Word], operands: int) -> None:
    while rest and rest[0].text.startswith("-"):
        rest.pop(0)
    del rest[:operands]


def _python(rest: list[Word], found: _Found) -> Word | None:
    """``-m MODULE``, when the module is what trains; ``None`` when a file or another launcher follows."""
    while rest and rest[0].text in SWITCHES["python"]:
        rest.pop(0)
    # One process, unless an outer launcher or torchrun says otherwise.
    found.placed.setdefault("cluster.gpus_per_node", 1)
    if not rest or rest[0].text != "-m":
        return None
    rest.pop(0)
    if rest and rest[0].text in TORCHRUN_MODULES:
        rest.pop(0)
        _options("torchrun", rest, found)
        return None
    return rest.pop(0) if rest else None


def _options(launcher: str, rest: list[Word], found: _Found) -> None:
    if launcher == "torchrun":
        # An agent starts the ranks, one unless it is told otherwise; what started the agent counted agents.
        found.placed["cluster.gpus_per_node"], found.ranks = 1, None
    while rest and rest[0].text.startswith("-"):
        word = rest.pop(0)
        option, equals, value = word.text.partition("=")
        glued = re.fullmatch(r"(-[nNH])(\d+)", word.text) if launcher != "torchrun" else None
        if glued:
            taken, option, value = [word], glued[1], glued[2]
        elif equals or option in SWITCHES[launcher]:
            taken = [word]
        else:
            count = 2 if option in PAIRS else 1
            taken = [word, *rest[:count]]
            value = rest[0].text if rest else ""
            del rest[:count]
        _option(launcher, option.lstrip("-").replace("_", "-"), value, tuple(taken), found)


def _option(launcher: str, option: str, value: str, words: tuple[Word, ...], found: _Found) -> None:
    problem = next((word.problem for word in words if word.problem is not None), None)
    reader = READERS[launcher].get(option)
    if problem is not None:
        found.placed.pop(KEYS.get(option, ""), None)
        found.unplaced.append(Unplaced.of("launcher", words, needs_running(problem)))
    elif reader is None:
        found.unplaced.append(Unplaced.of("launcher", words, f"an option of {launcher} that megawrap has no key for"))
    else:
        reason = reader(found, value, words)
        if reason:
            found.unplaced.append(Unplaced.of("launcher", words, reason, needed=reason not in HARMLESS))


def _number(key: str) -> Callable[[_Found, str, tuple[Word, ...]], str | None]:
    def read(found: _Found, value: str, _: tuple[Word, ...]) -> str | None:
        if not value.isdigit():
            found.placed.pop(key, None)
            return f"{key} is a number: set it"
        found.placed[key] = int(value)
        return None

    return read


def _ranks(found: _Found, value: str, _: tuple[Word, ...]) -> str | None:
    if not value.isdigit():
        return "a number of ranks is expected"
    found.ranks = int(value)
    return None


def _hosts(found: _Found, value: str, _: tuple[Word, ...]) -> str | None:
    rows = [row.partition(":") for row in value.split(",") if row]
    found.placed["launcher.hosts"] = [name for name, _, _ in rows]
    found.placed["cluster.nodes"] = len(rows)
    slots = {count for _, _, count in rows if count}
    if len(slots) == 1 and next(iter(slots)).isdigit():
        found.placed["cluster.gpus_per_node"] = int(next(iter(slots)))
    return None


def _address(found: _Found, value: str, words: tuple[Word, ...]) -> str | None:
    host, _, port = value.partition(":")
    found.address = (*words[:-1], Word(host, words[0].line))
    return _number("launcher.master_port")(found, port, words) if port else None


def _export(found: _Found, value: str, _: tuple[Word, ...]) -> str | None:
    name, equals, text = value.partition("=")
    if not equals:
        return f"the value of {name} comes from the shell, and reaches the ranks from there"
    found.environment[name] = text
    return None


def _unset(found: _Found, value: str, _: tuple[Word, ...]) -> str | None:
    found.environment[value] = None
    return None


def _harmless(reason: str) -> Callable[[_Found, str, tuple[Word, ...]], str | None]:
    return lambda *_: reason


OWN_RENDEZVOUS = "megawrap's launcher sees to it"
ALONE = "a single machine needs no meeting point"
KEYS = {
    "nproc-per-node": "cluster.gpus_per_node",
    "nnodes": "cluster.nodes",
    "master-port": "launcher.master_port",
}
HARMLESS = {OWN_RENDEZVOUS, ALONE}
_OWN = _harmless(OWN_RENDEZVOUS)
READERS: dict[str, dict[str, Callable[[_Found, str, tuple[Word, ...]], str | None]]] = {
    "torchrun": {
        **{option: _number(key) for option, key in KEYS.items()},
        "master-addr": _address,
        "rdzv-endpoint": _address,
        **dict.fromkeys(("node-rank", "rdzv-backend", "rdzv-id", "standalone", "tee", "log-dir", "t", "r"), _OWN),
        "redirects": _OWN,
    },
    "srun": {
        **dict.fromkeys(("N", "nodes"), _number("cluster.nodes")),
        **dict.fromkeys(("ntasks-per-node",), _number("cluster.gpus_per_node")),
        **dict.fromkeys(("n", "ntasks"), _ranks),
        **dict.fromkeys(("l", "label", "u", "unbuffered"), _OWN),
    },
    "mpirun": {
        **dict.fromkeys(("np", "n", "c"), _ranks),
        **dict.fromkeys(("H", "host"), _hosts),
        **dict.fromkeys(("npernode", "ppr", "N"), _number("cluster.gpus_per_node")),
        "x": _export,
        **dict.fromkeys(("allow-run-as-root", "tag-output"), _OWN),
    },
    "env": {"u": _unset},
}


def _finish(found: _Found, program: Word) -> None:
    nodes = found.placed.get("cluster.nodes", 1)
    if found.ranks is not None:
        _divide(found, nodes)
    if found.address:
        reason = ALONE if nodes == 1 else "launcher.hosts names every machine, this one first: set it"
        found.unplaced.append(Unplaced.of("launcher", found.address, reason, needed=nodes != 1))
    if program.text.rpartition("/")[2] != OUR_PROGRAM:
        reason = f"megawrap starts {OUR_PROGRAM}; what this program does differently is not in the configuration"
        found.unplaced.append(Unplaced.of("program", [program], reason, needed=False))


def _divide(found: _Found, nodes: int) -> None:
    assert found.ranks is not None
    if found.ranks % nodes:
        words = Word(f"{found.ranks} ranks")
        found.unplaced.append(Unplaced.of("launcher", [words], f"they do not spread evenly over {nodes} machines"))
    else:
        found.placed["cluster.gpus_per_node"] = found.ranks // nodes
