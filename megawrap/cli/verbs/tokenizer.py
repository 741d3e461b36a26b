"""Tokenizers: is it the one it is taken for, and where do two differ?"""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from megawrap.cli import render
from megawrap.cli.verbs import tokenizer_words as words
from megawrap.cli.verbs.data_words import misused
from megawrap.cli.verbs.verb import Invocation, Verb
from megawrap.errors import Finding, errors

if TYPE_CHECKING:
    from megawrap.preprocess.golden import Family


def _check_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "PATH | tokenizer=NAME tokenizer.model=FILE [--family NAME | model=PRESET]"
    parser.add_argument("--family", metavar="NAME", help="llama2, llama3, gpt2 or qwen2 (what model= uses)")
    parser.add_argument("--text", metavar="TEXT", help="with --ids: a text ...")
    parser.add_argument("--ids", metavar="IDS", help="... and the ids that somebody says it has: 1,15043,3186")


def _check(invocation: Invocation) -> int:
    """Exit code 2 when something contradicts."""
    from megawrap.cli import show_tokenizer
    from megawrap.preprocess.golden.check import check
    from megawrap.preprocess.tokenizers import build

    options = invocation.options
    family = words.family(invocation, options.words)
    own = [word for word in options.words if not word.startswith("model=")]
    settings = words.tokenizer(invocation, own) if own else None
    if (options.ids is None) != (options.text is None):
        raise misused(invocation, "--text and --ids go together")
    if options.ids is not None:
        wanted = None if settings is None else build(settings).encode_batch([options.text]).ids.tolist()
        findings = _claimed(invocation, family, wanted)
        facts: dict[str, Any] = {"text": options.text}
    else:
        if settings is None:
            raise misused(invocation, "which tokenizer? A path, or tokenizer=NAME tokenizer.model=FILE")
        tokenizer = build(settings)
        findings = check(family, settings, tokenizer)
        facts = {"type": settings.type, "engine": tokenizer.engine, "vocab_size": tokenizer.vocab_size,
                 "eod": tokenizer.eod, "sha256": tokenizer.fingerprint}  # fmt: skip
    if options.json:
        _print_json(family=family.key, texts=len(family.cases), tokenizer=facts, findings=findings)
    else:
        show_tokenizer.checked(family, facts, findings)
        render.findings(findings, as_json=False)
    return 2 if errors(findings) else 0


def _claimed(invocation: Invocation, family: Family, wanted: Sequence[int] | None) -> list[Finding]:
    """What is wrong with ``--ids``, against a tokenizer's ids or the family's vector."""
    from megawrap.preprocess.golden.check import compare_ids

    text, ids = invocation.options.text, invocation.options.ids
    if wanted is None:
        wanted = dict(family.cases).get(text)
    if wanted is None:
        raise misused(invocation, f"{family.name} has no vector of {text!r}: name a tokenizer that gives its ids")
    try:
        given = [int(word) for word in ids.replace(",", " ").split()]
    except ValueError:
        raise misused(invocation, f"--ids {ids}: numbers with commas or spaces between them") from None
    finding = compare_ids(family, text, given, wanted)
    return [] if finding is None else [finding]


def _diff_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = 'A B, each a path or overrides in one word: "tokenizer=llama2 tokenizer.model=FILE"'
    parser.add_argument("--text", action="append", metavar="TEXT", help="a text to try (may be repeated)")
    parser.add_argument("--file", metavar="FILE", help="lines to try: JSON with a text, or plain")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="differences to show (10)")


def _diff(invocation: Invocation) -> int:
    """Exit code 2 when they differ."""
    from megawrap.cli import show_tokenizer
    from megawrap.preprocess.golden import all_texts
    from megawrap.preprocess.golden.diff import compare
    from megawrap.preprocess.tokenizers import build
    from megawrap.preprocess.tokenizers.guard import hard_texts

    sides = invocation.options.words
    if len(sides) != 2:
        message = f"it compares two, and there are {len(sides)}; overrides go in one quoted word each"
        raise misused(invocation, message)
    if invocation.options.limit < 1:
        raise misused(invocation, f"--limit {invocation.options.limit}: it is 1 or more")
    first, second = (build(_side(invocation, side)) for side in sides)
    own = words.texts(invocation)
    texts = own or [*all_texts(), *hard_texts([*first.special_tokens, *second.special_tokens])]
    found = compare(first, second, texts, limit=invocation.options.limit)
    findings = list(found.findings())
    if invocation.options.json:
        _print_json(**dataclasses.asdict(found), findings=findings)
    else:
        show_tokenizer.compared(sides, found)
        render.findings(findings, as_json=False)
    return 2 if findings else 0


def _side(invocation: Invocation, word: str) -> Any:
    settings = words.tokenizer(invocation, [word] if Path(word).exists() else shlex.split(word))
    if settings is None:
        raise misused(invocation, f"{word} chooses no tokenizer: tokenizer=NAME does")
    return settings


def _print_json(*, findings: Sequence[Finding], **fields: Any) -> None:
    answer = {**fields, "findings": [finding.as_dict() for finding in findings]}
    sys.stdout.write(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode() + "\n")


ACTIONS = (
    Verb("check", "Compare a tokenizer with the published ids of its family.", _check_options, _check),
    Verb("diff", "Compare two tokenizers on any texts.", _diff_options, _diff),
)
