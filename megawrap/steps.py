"""The steps of a launch: tokenize, measure the network, train. Each is a program in words, launcher left open."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import megawrap
from megawrap.config.sections.root import Config
from megawrap.hardware.machine import Machine
from megawrap.megatron.compile.special import required
from megawrap.megatron.surface import Target


@dataclasses.dataclass(frozen=True)
class Step:
    """One step. ``program`` are the words after the Python interpreter; ``ranks`` says whether one process runs it or
    every rank of the world; ``stops`` whether its failure ends the launch."""

    name: Literal["preprocess", "preflight", "train"]
    program: tuple[str, ...]
    ranks: Literal["one", "world"]
    stops: bool = True


def steps(config: Config, target: Target, argv: Sequence[str], where: Machine) -> tuple[Step, ...]:
    """The steps of ``config``; ``argv`` is the compiled argument list."""
    return (*_preprocess(config), *_preflight(config, where), _train(target, argv, where))


def _preprocess(config: Config) -> Iterator[Step]:
    if config.data.source in ("jsonl", "sample"):
        # A launch is started again and again: what the manifest says to be there already is not made anew.
        yield Step("preprocess", ("-m", "megawrap.preprocess", *preprocess_words(config), "--reuse"), "one")


def preprocess_words(config: Config) -> list[str]:
    """Arguments of ``megawrap.preprocess``, named as in Megatron's tools/preprocess_data.py.

    Raises:
        ConfigError: when the input, the output or the tokenizer is not set.
    """
    data, tokenizer = config.data, config.tokenizer
    reason = "tokenizing"
    words = ["--input", required(data.input, "data.input", reason)]
    words += ["--output-prefix", required(data.output_prefix, "data.output_prefix", reason)]
    words += ["--json-keys", *data.json_keys]
    words += ["--tokenizer-type", required(tokenizer.type, "tokenizer.type", reason)]
    optional = (
        ("--tokenizer-model", tokenizer.model),
        ("--vocab-file", tokenizer.vocab_file),
        ("--merge-file", tokenizer.merge_file),
        ("--vocab-size", tokenizer.vocab_size),
        ("--extra-vocab-size", tokenizer.extra_vocab_size),
        ("--tiktoken-pattern", tokenizer.tiktoken_pattern),
        ("--tiktoken-num-special-tokens", tokenizer.tiktoken_num_special_tokens),
    )
    words += [word for flag, value in optional if value is not None for word in (flag, str(value))]
    special = tokenizer.special_tokens
    words += ["--tokenizer-special-tokens", *special] if special else []
    words += ["--tokenizer-hf-no-include-special-tokens"] if tokenizer.include_special_tokens is False else []
    words += ["--legacy-tokenizer"] if tokenizer.legacy else []
    words += ["--append-eod"] if data.append_eod else []
    words += ["--on-error", data.on_error, "--max-errors", str(data.max_errors)] if data.on_error != "stop" else []
    words += ["--resume"] if data.resume else []
    return [*words, "--workers", str(data.workers), "--progress", "json"]


def _preflight(config: Config, where: Machine) -> Iterator[Step]:
    preflight = config.preflight
    if preflight.mode == "off" or where.world_size < 2:
        return
    worker = str(Path(megawrap.__file__).parent / "rccl_tests" / "worker.py")
    words = ["--backend", "gloo" if where.device == "cpu" else "nccl"]
    words += ["--min-bytes", preflight.min_bytes, "--max-bytes", preflight.max_bytes]
    words += ["--factor", str(preflight.factor)]
    words += ["--iters", str(preflight.iters), "--timeout", str(preflight.timeout_seconds)]
    words += ["--output", str(Path(required(config.run.dir, "run.dir", "the preflight")) / "preflight.json")]
    yield Step("preflight", (worker, *words), "world", stops=preflight.mode == "required")


def _train(target: Target, argv: Sequence[str], where: Machine) -> Step:
    stand_in = ("-m", "megawrap.megatron.cpu") if where.device == "cpu" else ()
    return Step("train", (*stand_in, *_program(target), *argv), "world")


def _program(target: Target) -> tuple[str, ...]:
    if target.source == "installed":
        return ("-m", "megawrap.megatron.embedded")
    return (str(target.path / "pretrain_gpt.py" if target.path else "pretrain_gpt.py"),)
