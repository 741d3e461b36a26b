"""Which choice of each group says most of what the original command says."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from megawrap.config import schema
from megawrap.importing.command import Command
from megawrap.importing.wanted import Wanted

# Groups of Megatron arguments → the keys that make a choice what it is: with another value there it is not taken.
IDENTITY = {
    "model": ("hidden_size", "ffn_hidden_size", "num_attention_heads", "num_experts"),
    "parallel": ("tp", "pp", "cp", "ep", "fsdp2", "megatron_fsdp"),
    "precision": ("dtype", "fp8_format", "fp8_recipe"),
    "attention": ("backend",),
    "recompute": ("granularity",),
    "optimizer": ("name",),
    "schedule": ("lr_decay_style",),
    "data": ("source",),
    "tokenizer": ("type",),
}
# A model preset has to leave at most this share of the lines that would be written without it.
MODEL_SHARE = 0.5


@dataclasses.dataclass(frozen=True)
class Choice:
    """A file of a group: its keys with the values that stand there, and which of them are its own, not its base's."""

    keys: dict[str, Any]
    own: frozenset[str]


def choose(wanted: Wanted, command: Command) -> dict[str, str]:
    """Group → the choice with the fewest differences, where one says more than the usual choice."""
    best = {group: _best(group, wanted, command) for group in IDENTITY}
    return {group: choice for group, choice in best.items() if choice is not None and choice != usual_choice(group)}


def vocabulary(wanted: Wanted, command: Command) -> int | None:
    """Size of the vocabulary of the model that fits, which no argument tells."""
    model = _best("model", wanted, command)
    return _choices("model")[model].keys.get("model.vocab_size") if model is not None else None


def _best(group: str, wanted: Wanted, command: Command) -> str | None:
    """Of the models that fit, one whose family the command names comes first: the vocabulary is then right."""
    usual = usual_choice(group)
    words = " ".join([command.source, command.program or "", *(word.text for word in command.arguments)])
    order = {
        name: (not _is_named(group, name, words), lines, _wrong(_choices(group)[name], wanted), name != usual, name)
        for name, lines in _offered(group, usual, wanted).items()
    }
    return min(order, key=lambda name: order[name], default=usual)


def _offered(group: str, usual: str | None, wanted: Wanted) -> dict[str, int]:
    """Choice → number of lines that remain to be written, of the choices that may be taken."""
    files = _choices(group)
    fit = {name: choice for name, choice in files.items() if name == usual or _is_alike(group, choice, wanted)}
    lines = {name: _lines(group, choice.keys, wanted) for name, choice in fit.items()}
    if group != "model":
        return lines
    without = _lines(group, {}, wanted)
    return {name: count for name, count in lines.items() if count <= MODEL_SHARE * without}


def _is_named(group: str, name: str, words: str) -> bool:
    family = name.split("_", maxsplit=1)[0]
    return group == "model" and family in re.sub(r"[^a-z0-9]", "", words.lower())


def _is_alike(group: str, choice: Choice, wanted: Wanted) -> bool:
    keys = [f"{group}.{name}" for name in IDENTITY[group]]
    # Models are told apart by what they lack, too: a dense one is no mixture of experts.
    telling = [key for key in keys if group == "model" or key in choice.own]
    return all(wanted.is_met(key, choice.keys.get(key)) for key in telling)


def _lines(group: str, keys: dict[str, Any], wanted: Wanted) -> int:
    concerned = [key for key in schema.fields() if key.startswith(f"{group}.") or key in keys]
    values = {key: keys.get(key, schema.fields()[key].default) for key in concerned if wanted.concerns(key)}
    # An interpolation is known only once everything is composed: it counts as a difference for every choice alike.
    return sum("${" in str(value) or not wanted.is_met(key, value) for key, value in values.items())


def _wrong(choice: Choice, wanted: Wanted) -> int:
    """How much of what the file says would have to be taken back."""
    known = {key: value for key, value in choice.keys.items() if key in schema.fields() and wanted.concerns(key)}
    return sum(not wanted.is_met(key, value) for key, value in known.items())


@functools.cache
def _choices(group: str) -> dict[str, Choice]:
    """Every choice of ``group`` that ships with megawrap; files that only serve others as a base are left out."""
    files = sorted((conf() / group).glob("*.yaml"))
    return {file.stem: _choice(group, file) for file in files if file.stem != "base"}


def _choice(group: str, file: Path) -> Choice:
    tree = OmegaConf.to_container(OmegaConf.load(file))
    assert isinstance(tree, dict)
    bases = [base for base in tree.pop("defaults", []) if isinstance(base, str) and base != "_self_"]
    inherited: dict[str, Any] = {}
    for base in bases:
        inherited |= _choice(group, file.with_name(f"{base.partition('@')[0]}.yaml")).keys
    is_global = re.search(r"^#\s*@package\s+_global_", file.read_text(encoding="utf-8"), re.MULTILINE)
    sections = tree if is_global else {group: tree}
    own = {f"{section!s}.{name!s}": value for section, keys in sections.items() for name, value in keys.items()}
    return Choice(inherited | own, frozenset(own))


@functools.cache
def usual_choice(group: str) -> str | None:
    """The choice of ``group`` in conf/config.yaml: what a configuration has when nothing is said."""
    tree = OmegaConf.to_container(OmegaConf.load(conf() / "config.yaml"))
    assert isinstance(tree, dict)
    rows: dict[str, str | None] = {}
    for row in tree["defaults"]:
        rows |= row if isinstance(row, dict) else {}
    return rows.get(group)


def conf() -> Path:
    """The folder of our own configuration groups."""
    return Path(next(iter(importlib.import_module("megawrap.conf").__path__)))
