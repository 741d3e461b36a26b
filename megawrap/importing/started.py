"""How a training was started: environment, srun, mpirun, torchrun or plain python, and the program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from megawrap.errors import ConfigError, Finding
from megawrap.hardware.environment import is_secret
from megawrap.importing.command import Command, Unplaced, Word, needs_running
from megawrap.importing.options import ALONE, HARMLESS, KEYS, PAIRS, READERS, SWITCHES, Found

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
PYTHON = re.compile(r"python[\d.]*")
TORCHRUN_MODULES = ("torch.distributed.run", "torch.distributed.launch")
OUR_PROGRAM = "pretrain_gpt"
# Programs of Megatron's own that build another model than GPT: by name, or by the folder of the example.
OTHER_MODELS = re.compile(
    r"(.*/)?pretrain_(bert|t5|vlm|mamba|hybrid|retro|ict|realm|vision_\w+)|(.*/)?(multimodal|mimo)/.*"
)
NAMES = {name: name for name in READERS} | {"mpiexec": "mpirun"}
# Programs that change nothing about what is trained, such as where a process may run.
WRAPPERS = {"command", "exec", "nohup", "time", "sudo", "numactl", "stdbuf", "nice", "timeout", "taskset", "setsid"}
# Programs whose options do matter, and are not read.
OTHERS = {"apptainer", "aprun", "docker", "enroot", "flux", "jsrun", "kubectl", "nsys", "podman", "ray", "rocprof",
          "rocprofv3", "singularity", "ssh"}  # fmt: skip
OPERATORS = re.compile(r"[|&;]+|\d*[<>]+&?\d*")


def read_command(words: Sequence[Word], source: str, environment: Mapping[str, str | None] | None = None) -> Command:
    """Split a command into what started it and what it trains. Words that begin with a flag are arguments alone.

    Raises:
        ConfigError: when no program is started.
    """
    found = Found(dict(environment or {}))
    rest = _first_command(words, found)
    if rest and rest[0].text.startswith("--"):
        _leave_secrets_out(found)
        return Command(source, found.environment, {}, None, tuple(rest), tuple(found.unplaced))
    program = _before_program(rest, found)
    if program is None:
        raise ConfigError(_no_program(words, source))
    if not any(word.text.startswith("--") or word.problem for word in rest):
        message = f"{source} starts {program.text} without any --flag: there is nothing to import"
        raise ConfigError(Finding(id="MW030", message=message))
    _finish(found, program)
    _leave_secrets_out(found)
    return Command(source, found.environment, found.placed, program.text, tuple(rest), tuple(found.unplaced))


def may_start(words: Sequence[Word]) -> bool:
    """Whether ``words`` may be a training command: a launcher, and a Python program behind it."""
    is_launcher = _is_startable(words[0]) or _name(words[0]) in (*WRAPPERS, *OTHERS) or words[0].problem is not None
    return is_launcher and any(word.text.endswith(".py") or word.text == "-m" for word in words)


def _name(word: Word) -> str:
    return word.text.rpartition("/")[2]


def _is_startable(word: Word) -> bool:
    is_known = _name(word) in NAMES or PYTHON.fullmatch(_name(word)) or ASSIGNMENT.fullmatch(word.text)
    return bool(is_known) or word.text.endswith(".py")


def _first_command(words: Sequence[Word], found: Found) -> list[Word]:
    """The words before a shell's operator, which a shell would not have handed over."""
    at = next((at for at, word in enumerate(words) if OPERATORS.fullmatch(word.text)), len(words))
    if at < len(words):
        reason = f"{words[at].text} ends the command for a shell; what follows is not read"
        found.unplaced.append(Unplaced.of("script", words[at:], reason))
    return list(words[:at])


def _no_program(words: Sequence[Word], source: str) -> Finding:
    message = f"{source} starts no training program: expected [VAR=VALUE] [torchrun ...] pretrain_gpt.py --flags"
    scripts = [f"--script {word.text}" for word in words if word.text.endswith(".sh")]
    return Finding(id="MW030", message=message, nearest=tuple(scripts[:1]))


def _before_program(rest: list[Word], found: Found) -> Word | None:
    while rest:
        word = rest.pop(0)
        name = _name(word)
        if ASSIGNMENT.fullmatch(word.text):
            _assign(word, found)
        elif word.text.endswith(".py"):
            return word
        elif word.problem is not None:
            found.unplaced.append(Unplaced.of("launcher", [word], needs_running(word.problem)))
        elif name in WRAPPERS or name in OTHERS:
            _skip(word, rest, found)
        elif PYTHON.fullmatch(name):
            module = _python(rest, found)
            if module is not None:
                return module
        elif name in NAMES:
            _launcher(NAMES[name], rest, found)
        else:
            return word if found.placed and not word.text.startswith("-") else None
    return None


def _assign(word: Word, found: Found) -> None:
    name, _, value = word.text.partition("=")
    if word.problem is not None:
        found.unplaced.append(Unplaced.of("environment", [word], needs_running(word.problem)))
    else:
        found.environment[name] = value


def _skip(word: Word, rest: list[Word], found: Found) -> None:
    """Go on where the next program stands."""
    known = (one for one in range(len(rest)) if _is_startable(rest[one]) or _name(rest[one]) in (*WRAPPERS, *OTHERS))
    at = next(known, len(rest))
    words, rest[:] = [word, *rest[:at]], rest[at:]
    is_wrapper = _name(word) in WRAPPERS
    reason = "it changes nothing about what is trained" if is_wrapper else "what it does is not in the configuration"
    if len(words) > 1 or not is_wrapper:
        found.unplaced.append(Unplaced.of("launcher", words, reason, needed=not is_wrapper))


def _python(rest: list[Word], found: Found) -> Word | None:
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
        _launcher("torchrun", rest, found)
        return None
    return rest.pop(0) if rest else None


def _launcher(launcher: str, rest: list[Word], found: Found) -> None:
    if launcher == "torchrun":
        # An agent starts the ranks, one unless it is told otherwise; what started the agent counted agents.
        found.placed["cluster.gpus_per_node"], found.ranks = 1, None
    if launcher == "accelerate" and rest and rest[0].text == "launch":
        rest.pop(0)
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


def _option(launcher: str, option: str, value: str, words: tuple[Word, ...], found: Found) -> None:
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


def _finish(found: Found, program: Word) -> None:
    nodes = found.placed.get("cluster.nodes", 1)
    # --nnodes 1:2 or a variable: placed nowhere, and listed.
    is_alone = nodes == 1 and not any("nodes" in one.words and one.needed for one in found.unplaced)
    if found.ranks is not None:
        _divide(found, nodes)
    if found.address:
        reason = ALONE if is_alone else "launcher.hosts names every machine, this one first: set it"
        found.unplaced.append(Unplaced.of("launcher", found.address, reason, needed=not is_alone))
    name = program.text.removesuffix(".py")
    if OTHER_MODELS.fullmatch(name):
        reason = f"it trains another model than GPT, and only {OUR_PROGRAM}.py is planned and started"
        found.unplaced.append(Unplaced.of("program", [program], reason))
    elif name.rpartition("/")[2] != OUR_PROGRAM:
        reason = f"megawrap starts {OUR_PROGRAM}.py; what this program does differently is not in the configuration"
        found.unplaced.append(Unplaced.of("program", [program], reason, needed=False))


def _leave_secrets_out(found: Found) -> None:
    """A key or a token is not copied into a file that others may read."""
    reason = "a secret is not written down: export it in the shell that starts megawrap, and the ranks have it"
    for name in [name for name, value in found.environment.items() if value and is_secret(name)]:
        del found.environment[name]
        found.unplaced.append(Unplaced("environment", f"{name}=***", reason))


def _divide(found: Found, nodes: int) -> None:
    assert found.ranks is not None
    if nodes < 1 or found.ranks % nodes:
        words = Word(f"{found.ranks} ranks")
        found.unplaced.append(Unplaced.of("launcher", [words], f"they do not spread evenly over {nodes} machines"))
    else:
        found.placed["cluster.gpus_per_node"] = found.ranks // nodes
