"""What the file system says about a plan (MW65x): inputs that are not there, tokenizers that cannot read text,
checkpoints to resume from."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path

from megawrap.catalog import finding
from megawrap.config.sections.root import Config
from megawrap.errors import Finding
from megawrap.megatron.rules.check import keys_of
from megawrap.plan import LaunchPlan

# Tokenizers whose model is a file here; the others may name something on a hub.
FILE_TOKENIZERS = ("Llama2Tokenizer", "SentencePieceTokenizer", "GPTSentencePieceTokenizer", "TikTokenizer")

TRACKER = "latest_checkpointed_iteration.txt"
"""What Megatron looks for in a folder of checkpoints."""


def guard(plan: LaunchPlan) -> LaunchPlan:
    """The plan, its findings completed by what its input files show."""
    config = plan.composed.config
    return plan.with_findings(_data(config), _tokenizer(config), _checkpoint(plan), _meeting(plan))


def _meeting(plan: LaunchPlan) -> Iterator[Finding]:
    if plan.machine.nodes > 1 and not plan.composed.config.launcher.hosts:
        message = f"the commands of {plan.machine.nodes} nodes name no host to meet at: each would wait for itself"
        keys, nearest = ("launcher.hosts", "cluster.nodes"), ("launcher.hosts=[node0,node1,...]",)
        yield finding("MW657", message, keys, nearest)


def _checkpoint(plan: LaunchPlan) -> Iterator[Finding]:
    folder = plan.effective.load
    if not folder or Path(folder, TRACKER).is_file():
        return
    what = "holds no checkpoint" if Path(folder).is_dir() else "is not there"
    key, must = keys_of("load", plan.compiled)[0], plan.effective.exit_on_missing_checkpoint
    if must:
        yield finding("MW656", f"{key} = {folder} {what}, and exit_on_missing_checkpoint is set", (key,))
    else:
        message = f"{key} = {folder} {what}: Megatron starts from scratch without a word"
        nearest = ("megatron.args.exit_on_missing_checkpoint=true",)
        yield finding("MW655", message, (key,), nearest)


def _data(config: Config) -> Iterator[Finding]:
    data = config.data
    if data.source in ("jsonl", "sample") and data.input is not None:
        yield from _text(data.input)
    prefixes = [data.prefix] if data.source == "prefix" else data.blend[1::2] if data.source == "blend" else []
    key = "data.prefix" if data.source == "prefix" else "data.blend"
    for prefix in prefixes:
        missing = [f"{prefix}{end}" for end in (".bin", ".idx") if not Path(f"{prefix}{end}").is_file()]
        if missing:
            yield finding("MW651", f"{key} = {prefix}: there is no {' and no '.join(missing)}", (key,))


def _text(input: str) -> Iterator[Finding]:
    file = Path(input)
    if input == "-":
        message = "data.input = -: a launch has no standard input; name a file, or use megawrap preprocess"
        yield finding("MW650", message, ("data.input",))
    elif not file.exists() and not any(glob.iglob(input, recursive=True)):  # noqa: PTH207 (any path)
        yield finding("MW650", f"data.input = {file}: there is no such file", ("data.input",))
    elif file.is_file() and file.stat().st_size == 0:
        yield finding("MW652", f"data.input = {file} is empty: nothing to train on", ("data.input",))


def _tokenizer(config: Config) -> Iterator[Finding]:
    tokenizer = config.tokenizer
    if config.data.source in ("jsonl", "sample") and tokenizer.type == "NullTokenizer":
        message = "text needs a tokenizer, and NullTokenizer reads only numbers"
        keys = ("tokenizer.type", "data.source")
        fitting = tuple(f"tokenizer={name}" for name in (config.model.tokenizer or "llama2", "huggingface"))
        yield finding("MW653", message, keys, fitting)
    if tokenizer.type in FILE_TOKENIZERS:
        if tokenizer.model is None:
            message = f"tokenizer.model is not set, and {tokenizer.type} needs its file"
            yield finding("MW654", message, ("tokenizer.model",))
        elif not Path(tokenizer.model).is_file():
            message = f"tokenizer.model = {tokenizer.model}: there is no such file"
            yield finding("MW654", message, ("tokenizer.model",))
