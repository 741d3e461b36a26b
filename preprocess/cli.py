"""The command, with the arguments of Megatron-LM's tools/preprocess_data.py.

With ``--progress json`` standard output carries one JSON object a line: ``start``, ``progress`` a few times a second,
then ``done`` or ``error``. Errors are told on standard error too, one a line.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from megawrap.errors import ConfigError, Finding, MegawrapError
from megawrap.preprocess.conversation import Progress
from megawrap.preprocess.engine import execute
from megawrap.preprocess.manifest import Manifest
from megawrap.preprocess.prepare import Prepared, prepare
from megawrap.preprocess.settings import Settings, TokenizerSettings
from megawrap.preprocess.tokenizers import TOKENIZERS

INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are findings."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(Finding(id="MW600", message=f"{message} (--help tells all arguments)"))


def main(words: Sequence[str] | None = None) -> int:
    """Run the command. Returns 0 when the output is complete, 1 when the run failed, 2 when what was asked is wrong,
    130 when it was interrupted."""
    words = sys.argv[1:] if words is None else words
    as_json = _wants_json(words)
    try:
        return _run(_parser().parse_args(words), as_json)
    except MegawrapError as failed:
        for finding in failed.findings:
            print(f"megawrap.preprocess: {finding.severity}: {_line(finding)}", file=sys.stderr)
        if as_json:
            _tell("error", findings=[finding.as_dict() for finding in failed.findings])
        return failed.exit_code
    except BrokenPipeError:  # whoever read our events has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("megawrap.preprocess: interrupted; nothing was written", file=sys.stderr)
        return INTERRUPTED


def _wants_json(words: Sequence[str]) -> bool:
    """Known before parsing, since parsing itself can fail."""
    return "--progress=json" in words or ("--progress", "json") in itertools.pairwise(words)


def _line(finding: Finding) -> str:
    nearest = f" (nearest: {', '.join(finding.nearest)})" if finding.nearest else ""
    return f"{finding.id} {finding.message}{nearest}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m megawrap.preprocess",
        description="Tokenize JSON lines into the .bin/.idx that Megatron-LM trains on. "
        "The output appears complete or not at all.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--input", type=Path, required=True, metavar="FILE", help="JSON objects in UTF-8, one a line")
    add("--output-prefix", required=True, metavar="P", help="writes P_KEY_document.bin, .idx and .json for each key")
    add("--json-keys", nargs="+", default=["text"], metavar="KEY", help="keys that hold the text (text)")
    add("--tokenizer-type", required=True, metavar="TYPE", help=f"one of {', '.join(TOKENIZERS)}")
    add("--tokenizer-model", type=Path, metavar="FILE", help="the model of a SentencePiece type")
    add("--vocab-file", type=Path, metavar="FILE", help="the vocabulary of types that keep it apart")
    add("--merge-file", type=Path, metavar="FILE", help="the BPE merges of types that keep them apart")
    add("--vocab-size", type=int, metavar="N", help="number of ids before padding; a model file must agree with it")
    add("--append-eod", action="store_true", help="end every document with the end-of-document id")
    cpus = len(os.sched_getaffinity(0))
    add("--workers", type=int, default=cpus, metavar="N", help=f"processes that encode ({cpus}: the CPUs at hand)")
    add("--progress", choices=("none", "json"), default="none", help="json: events on standard output (none)")
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    names = ("model", "vocab_file", "merge_file", "vocab_size")
    flags = ("tokenizer_model", "vocab_file", "merge_file", "vocab_size")
    values = {name: getattr(options, flag) for name, flag in zip(names, flags, strict=True)}
    return Settings(
        input=options.input,
        output_prefix=options.output_prefix,
        tokenizer=TokenizerSettings(type=options.tokenizer_type, **values),
        json_keys=tuple(options.json_keys),
        append_eod=options.append_eod,
        workers=options.workers,
    )


def _run(options: argparse.Namespace, as_json: bool) -> int:
    began = time.monotonic()
    prepared = prepare(_settings(options))
    if as_json:
        _start(prepared)
    made = execute(prepared, _progress if as_json else None)
    (_done if as_json else _summary)(prepared.settings, made, time.monotonic() - began)
    return 0


def _start(prepared: Prepared) -> None:
    settings = prepared.settings
    _tell(
        "start",
        input=str(settings.input),
        outputs=[settings.prefix(key) for key in settings.json_keys],
        total_bytes=prepared.total_bytes,
        tokenizer=settings.tokenizer.type,
        engine=prepared.tokenizer.engine,
        vocab_size=prepared.tokenizer.vocab_size,
        dtype=np.dtype(prepared.dtype).name,
        append_eod=settings.append_eod,
        workers=settings.workers,
    )


def _progress(progress: Progress) -> None:
    _tell("progress", **dataclasses.asdict(progress))


def _done(settings: Settings, made: Manifest, seconds: float) -> None:
    prefix = settings.prefix(settings.json_keys[0])
    _tell("done", prefix=prefix, documents=made.documents, tokens=made.tokens, seconds=round(seconds, 3))


def _summary(settings: Settings, made: Manifest, seconds: float) -> None:
    for output in made.outputs:
        counts = f"{output.documents:,} documents, {output.tokens:,} tokens"
        print(f"{settings.prefix(output.key)}.bin and .idx: {counts} (all in {seconds:.1f} s)")


def _tell(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}))  # ASCII, whatever the terminal takes
    sys.stdout.flush()
