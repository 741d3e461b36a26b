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
from megawrap.preprocess import rejects
from megawrap.preprocess.conversation import Progress
from megawrap.preprocess.engine import execute
from megawrap.preprocess.manifest import Manifest, matches
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
        kept = "what is done waits for --resume" if "--resume" in words else "nothing was written"
        print(f"megawrap.preprocess: interrupted; {kept}", file=sys.stderr)
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
    what = "file, folder, 'pattern' or - (standard input) of JSON objects in UTF-8, one a line, plain, .gz or .zst; "
    add("--input", type=Path, required=True, metavar="FILE", help=f"{what}or of .parquet")
    add("--output-prefix", required=True, metavar="P", help="writes P_KEY_document.bin, .idx and .json for each key")
    add("--json-keys", nargs="+", default=["text"], metavar="KEY", help="keys that hold the text (text)")
    add("--tokenizer-type", required=True, metavar="TYPE", help=f"one of {', '.join(TOKENIZERS)}")
    add("--tokenizer-model", type=Path, metavar="FILE", help="the model: a file, a folder or a hub name, as TYPE wants")
    add("--vocab-file", type=Path, metavar="FILE", help="the vocabulary of types that keep it apart")
    add("--merge-file", type=Path, metavar="FILE", help="the BPE merges of types that keep them apart")
    add("--vocab-size", type=int, metavar="N", help="number of ids before padding; a model file must agree with it")
    add("--extra-vocab-size", type=int, metavar="N", help="DeepSeek types: ids behind those of the model")
    add("--tokenizer-special-tokens", nargs="+", metavar="TOKEN", help="further tokens that are never cut")
    add("--tiktoken-pattern", choices=("v1", "v2"), help="TikTokenizer: how text is cut before the merges (v2)")
    add("--tiktoken-num-special-tokens", type=int, metavar="N", help="TikTokenizer: ids for special tokens (1000)")
    add(
        "--tokenizer-hf-no-include-special-tokens",
        action="store_false",
        default=None,
        help="Hugging Face types: without the model's own BOS, EOS, [CLS] and [SEP]",
    )
    add("--legacy-tokenizer", action="store_true", default=None, help="as Megatron before 0.15")
    add("--append-eod", action="store_true", help="end every document with the end-of-document id")
    cpus = len(os.sched_getaffinity(0))
    add("--workers", type=int, default=cpus, metavar="N", help=f"processes that encode ({cpus}: the CPUs at hand)")
    add("--on-error", default="stop", metavar="stop|skip", help="what a line does that cannot be used (stop)")
    add("--max-errors", type=int, default=1000, metavar="N", help="lines that --on-error skip may skip (1000)")
    add("--resume", action="store_true", help="go on where an earlier run ended, or do nothing if it is complete")
    add("--reuse", action="store_true", help="do nothing if the output is complete and still what would be made")
    add("--progress", choices=("none", "json"), default="none", help="json: events on standard output (none)")
    return parser


# Fields of TokenizerSettings, and what Megatron calls them.
_TOKENIZER = {
    "model": "tokenizer_model",
    "vocab_file": "vocab_file",
    "merge_file": "merge_file",
    "vocab_size": "vocab_size",
    "extra_vocab_size": "extra_vocab_size",
    "special_tokens": "tokenizer_special_tokens",
    "tiktoken_pattern": "tiktoken_pattern",
    "tiktoken_num_special_tokens": "tiktoken_num_special_tokens",
    "include_special_tokens": "tokenizer_hf_no_include_special_tokens",
    "legacy": "legacy_tokenizer",
}


def _settings(options: argparse.Namespace) -> Settings:
    values = {name: getattr(options, flag) for name, flag in _TOKENIZER.items()}
    if values["special_tokens"] is not None:
        values["special_tokens"] = tuple(values["special_tokens"])
    return Settings(
        input=options.input,
        output_prefix=options.output_prefix,
        tokenizer=TokenizerSettings(type=options.tokenizer_type, **values),
        json_keys=tuple(options.json_keys),
        append_eod=options.append_eod,
        workers=options.workers,
        on_error=options.on_error,
        max_errors=options.max_errors,
        resume=options.resume,
    )


def _run(options: argparse.Namespace, as_json: bool) -> int:
    began = time.monotonic()
    prepared = prepare(_settings(options))
    done = _Told(prepared, began, as_json)
    if (options.reuse or options.resume) and (there := matches(prepared.settings)):
        done.made(there, reused=True)
        return 0
    if as_json:
        _start(prepared)
    done.made(execute(prepared, done.progress if as_json else None), reused=False)
    return 0


def _start(prepared: Prepared) -> None:
    settings = prepared.settings
    _tell(
        "start",
        input=str(settings.input),
        files=len(prepared.sources),
        outputs=[settings.prefix(key) for key in settings.json_keys],
        total_bytes=prepared.total_bytes,
        tokenizer=settings.tokenizer.type,
        engine=prepared.tokenizer.engine,
        why=prepared.why,
        vocab_size=prepared.tokenizer.vocab_size,
        dtype=np.dtype(prepared.dtype).name,
        append_eod=settings.append_eod,
        workers=settings.workers,
    )


class _Told:
    """What is said of a run that began at a time of the monotonic clock."""

    def __init__(self, prepared: Prepared, began: float, as_json: bool) -> None:
        self._settings = prepared.settings
        self._why = prepared.why
        self._began = began
        self._as_json = as_json

    @property
    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 3)

    def progress(self, progress: Progress) -> None:
        """Some of it is done."""
        _tell("progress", **dataclasses.asdict(progress), seconds=self._seconds)

    def made(self, made: Manifest, *, reused: bool) -> None:
        """It is complete, or was so already."""
        if self._as_json:
            prefix = self._settings.prefix(self._settings.json_keys[0])
            counts = {"documents": made.documents, "tokens": made.tokens, "rejected": made.rejected}
            _tell("done", prefix=prefix, **counts, engine=made.engine, reused=reused, seconds=self._seconds)
            return
        if not reused:
            print(f"encoded with {self._why}")
        for output in made.outputs:
            held = f"{output.documents:,} documents, {output.tokens:,} tokens"
            how = "already there" if reused else f"all in {self._seconds:.1f} s"
            print(f"{self._settings.prefix(output.key)}.bin and .idx: {held} ({how})")
        if made.rejected:
            print(f"{rejects.final(self._settings.output_prefix)}: skipped lines: {rejects.told(made.rejected)}")


def _tell(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}))  # ASCII, whatever the terminal takes
    sys.stdout.flush()
