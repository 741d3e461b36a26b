"""What each launcher's options say: keys of the cluster and the launcher, or why there is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from megawrap.importing.command import Unplaced, Word

# Options that are followed by no word; --option=word never is.
SWITCHES = {
    "torchrun": {"--standalone", "--no-python", "--no_python", "--run-path", "--run_path", "--use-env", "--use_env"},
    "srun": {"-l", "--label", "-u", "--unbuffered", "--exclusive", "--overlap", "-v", "-Q", "--mpi", "-K"},
    "mpirun": {"--allow-run-as-root", "--oversubscribe", "--tag-output", "-v", "--display-map", "--report-bindings"},
    "deepspeed": {"--no_python", "--no_local_rank", "--no_ssh", "--force_multi", "--module", "--save_pid"},
    "accelerate": {"--multi_gpu", "--cpu", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm", "--quiet", "--debug"},
    "python": {"-u", "-O", "-B", "-E", "-s", "-I", "-q"},
    "env": {"-i"},
}
# Options followed by two words.
PAIRS = {"--mca", "-mca", "--gmca"}
KEYS = {
    "nproc-per-node": "cluster.gpus_per_node",
    "nnodes": "cluster.nodes",
    "master-port": "launcher.master_port",
}


@dataclasses.dataclass
class Found:
    """What the words before the program say. ``nodes``, ``ranks`` and ``per_node`` as the outer launcher counts."""

    environment: dict[str, str | None] = dataclasses.field(default_factory=dict)
    placed: dict[str, Any] = dataclasses.field(default_factory=dict)
    unplaced: list[Unplaced] = dataclasses.field(default_factory=list)
    ranks: int | None = None
    address: tuple[Word, ...] = ()


def _number(key: str) -> Callable[[Found, str, tuple[Word, ...]], str | None]:
    def read(found: Found, value: str, _: tuple[Word, ...]) -> str | None:
        if not value.isdigit():
            found.placed.pop(key, None)
            return f"{key} is a number: set it"
        found.placed[key] = int(value)
        return None

    return read


def _gpus(found: Found, value: str, _: tuple[Word, ...]) -> str | None:
    """``8`` or ``TYPE:8``. Tasks are what runs, so a number of tasks says it where both are given."""
    count = value.rpartition(":")[2]
    if not count.isdigit():
        return "cluster.gpus_per_node is a number: set it"
    found.placed.setdefault("cluster.gpus_per_node", int(count))
    return None


def _ranks(found: Found, value: str, _: tuple[Word, ...]) -> str | None:
    if not value.isdigit():
        return "a number of ranks is expected"
    found.ranks = int(value)
    return None


def _hosts(found: Found, value: str, _: tuple[Word, ...]) -> str | None:
    rows = [row.partition(":") for row in value.split(",") if row]
    found.placed["launcher.hosts"] = [name for name, _, _ in rows]
    found.placed["cluster.nodes"] = len(rows)
    slots = {count for _, _, count in rows if count}
    if len(slots) == 1 and next(iter(slots)).isdigit():
        found.placed["cluster.gpus_per_node"] = int(next(iter(slots)))
    return None


def _address(found: Found, value: str, words: tuple[Word, ...]) -> str | None:
    host, _, port = value.partition(":")
    option, equals, _ = words[-1].text.partition("=")
    found.address = (*words[:-1], Word(f"{option}={host}" if equals else host, words[0].line))
    return _number("launcher.master_port")(found, port, words) if port else None


def _export(found: Found, value: str, _: tuple[Word, ...]) -> str | None:
    name, equals, text = value.partition("=")
    if not equals:
        return f"the value of {name} comes from the shell, and reaches the ranks from there"
    found.environment[name] = text
    return None


def _unset(found: Found, value: str, _: tuple[Word, ...]) -> str | None:
    found.environment[value] = None
    return None


def _host_file(*_: Any) -> str:
    return "the file is not read: set launcher.hosts"


def _harmless(reason: str) -> Callable[[Found, str, tuple[Word, ...]], str | None]:
    return lambda *_: reason


CLEAN = "a run sees the environment of the shell that starts megawrap"
OWN_RENDEZVOUS = "megawrap's launcher sees to it"
ALONE = "a single machine needs no meeting point"
HARMLESS = {OWN_RENDEZVOUS, ALONE}
_OWN = _harmless(OWN_RENDEZVOUS)
READERS: dict[str, dict[str, Callable[[Found, str, tuple[Word, ...]], str | None]]] = {
    "torchrun": {
        **{option: _number(key) for option, key in KEYS.items()},
        "master-addr": _address,
        "rdzv-endpoint": _address,
        **dict.fromkeys(("node-rank", "rdzv-backend", "rdzv-id", "standalone", "tee", "log-dir", "t", "r"), _OWN),
        "redirects": _OWN,
    },
    "srun": {
        **dict.fromkeys(("N", "nodes"), _number("cluster.nodes")),
        "ntasks-per-node": _number("cluster.gpus_per_node"),
        "gpus-per-node": _gpus,
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
    "deepspeed": {
        "num-gpus": _number("cluster.gpus_per_node"),
        "num-nodes": _number("cluster.nodes"),
        "master-port": _number("launcher.master_port"),
        "master-addr": _address,
        "H": _host_file,
        "hostfile": _host_file,
    },
    "accelerate": {
        "num-processes": _ranks,
        "num-machines": _number("cluster.nodes"),
        "main-process-port": _number("launcher.master_port"),
        "main-process-ip": _address,
        **dict.fromkeys(("machine-rank", "rdzv-backend", "multi-gpu"), _OWN),
    },
    "env": {"u": _unset, "i": _harmless(CLEAN)},
}
