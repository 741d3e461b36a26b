"""Datasets that exist: look into them, check them, merge and split them, count what a run takes of them."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import orjson

from megawrap.cli import render
from megawrap.cli.verbs import data_words as words
from megawrap.cli.verbs.verb import Invocation, Verb
from megawrap.errors import Finding, errors

if TYPE_CHECKING:
    from megawrap.preprocess.tools.draft import Made


def _inspect_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "PREFIX ... [tokenizer=NAME tokenizer.model=FILE]"
    parser.add_argument("--samples", type=int, default=3, metavar="N", help="documents to show (3)")
    parser.add_argument("--sample-tokens", type=int, default=64, metavar="N", help="tokens of each (64)")


def _inspect(invocation: Invocation) -> int:
    from megawrap.cli import show_data
    from megawrap.preprocess.tools.inspect import inspect, total_bytes
    from megawrap.preprocess.tools.lineage import other_tokenizer

    options = invocation.options
    prefixes, overrides = words.datasets(invocation)
    tokenizer = words.tokenizer(invocation, overrides)
    if min(options.samples, options.sample_tokens) < 0:
        raise words.misused(invocation, "--samples and --sample-tokens are 0 or more")
    with show_data.progress("read", sum(map(total_bytes, prefixes)), quiet=options.json) as advance:
        found = [
            inspect(prefix, samples=options.samples, sample_tokens=options.sample_tokens, tokenizer=tokenizer,
                    advance=advance)
            for prefix in prefixes
        ]  # fmt: skip
    findings = [finding for prefix in prefixes for finding in other_tokenizer(prefix, tokenizer)]
    if options.json:
        _print_json(datasets=[dataclasses.asdict(one) for one in found], findings=findings)
    else:
        show_data.descriptions(found)
        render.findings(findings, as_json=False)
    return 0


def _verify_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "PREFIX ... [tokenizer=NAME tokenizer.model=FILE]"
    parser.add_argument("--deep", action="store_true", help="read every id and compare it with the vocabulary")
    parser.add_argument("--vocab-size", type=int, metavar="N", help="number of ids (what the manifest says)")


def _verify(invocation: Invocation) -> int:
    """Exit code 1 when something is wrong with a dataset."""
    from megawrap.cli import show_data
    from megawrap.preprocess.tools.lineage import other_tokenizer
    from megawrap.preprocess.tools.verify import total_bytes, verify

    options = invocation.options
    prefixes, overrides = words.datasets(invocation)
    tokenizer = words.tokenizer(invocation, overrides)
    vocab_size = tokenizer.vocab_size if tokenizer else options.vocab_size
    if vocab_size is not None and vocab_size < 1:
        raise words.misused(invocation, f"--vocab-size {vocab_size}: a vocabulary has one id or more")
    with show_data.progress("verify", total_bytes(prefixes, deep=options.deep), quiet=options.json) as advance:
        found = [verify(prefix, deep=options.deep, vocab_size=vocab_size, advance=advance) for prefix in prefixes]
    findings = [finding for one in found for finding in (*one.findings, *other_tokenizer(one.prefix, tokenizer))]
    if options.json:
        rows = [{**dataclasses.asdict(one), "sound": one.is_sound} for one in found]
        _print_json(datasets=[{key: row[key] for key in row if key != "findings"} for row in rows], findings=findings)
    else:
        show_data.verdicts(found)
        render.findings(findings, as_json=False)
    return 1 if errors(findings) else 0


def _merge_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "A B ... -o OUT"
    parser.add_argument("--output", "-o", metavar="OUT", help="the dataset to write, without .bin and .idx")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it is there")
    parser.add_argument("--mixed", action="store_true", help="even if the manifests tell of different tokenizers")


def _merge(invocation: Invocation) -> int:
    from megawrap.preprocess.tools.merge import merge, total_bytes

    options = invocation.options
    prefixes, _ = words.datasets(invocation, only=True)
    output = words.given(invocation, options.output, "-o OUT: what is the merged dataset to be called?")
    return _write(
        invocation,
        "merge",
        total_bytes(prefixes),
        lambda advance: [
            merge(prefixes, output, overwrite=options.overwrite, mixed_allowed=options.mixed, advance=advance)
        ],
    )


def _split_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "PREFIX --fractions 98,1,1"
    parser.add_argument("--fractions", metavar="A,B,...", help="shares of the documents: 98,1,1")
    parser.add_argument("--names", metavar="A,B,...", help="what stands behind OUT_ (train,valid,test)")
    parser.add_argument("--output", "-o", metavar="OUT", help="start of the names to write (PREFIX)")
    parser.add_argument("--seed", type=int, metavar="N", help="draw the documents; without it, they stay in order")
    parser.add_argument("--overwrite", action="store_true", help="replace what is there")


def _split(invocation: Invocation) -> int:
    from megawrap.preprocess.tools.split import split, total_bytes

    options = invocation.options
    (prefix,), _ = words.datasets(invocation, only=True, most=1)
    fractions = words.given(invocation, options.fractions, "--fractions 98,1,1: how is it to be split?")
    shares = words.numbers(invocation, "--fractions", fractions, Fraction)
    if options.seed is not None and options.seed < 0:
        raise words.misused(invocation, f"--seed {options.seed}: a seed is 0 or more")
    return _write(
        invocation,
        "split",
        total_bytes(prefix),
        lambda advance: split(
            prefix, shares, options.output or prefix, names=options.names.split(",") if options.names else (),
            seed=options.seed, overwrite=options.overwrite, advance=advance,
        ),
    )  # fmt: skip


def _write(invocation: Invocation, title: str, total: int, make: Callable[[Any], list[Made]]) -> int:
    """Make datasets below a bar, so that a signal leaves nothing of them, and tell of them."""
    from megawrap.cli import show_data
    from megawrap.run.process import Signals

    with Signals(), show_data.progress(title, total, quiet=invocation.options.json) as advance:
        made = make(advance)
    if invocation.options.json:
        _print_json(datasets=[dataclasses.asdict(one) for one in made])
    else:
        show_data.made(made)
    return 0


def _stats_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "A [B ...] [KEY=VALUE ...]"
    parser.add_argument("--tokens", metavar="N", help="tokens of the run: 300B, 1.5T (those of train.*)")
    parser.add_argument("--weights", metavar="A,B,...", help="a weight for each dataset (their sizes)")


def _stats(invocation: Invocation) -> int:
    from megawrap.cli import show_data
    from megawrap.preprocess.tools.stats import stats

    options = invocation.options
    prefixes, overrides = words.datasets(invocation, least=0)
    config = words.composed(invocation, overrides) if overrides or not prefixes else None
    weights = words.numbers(invocation, "--weights", options.weights, float) if options.weights else []
    if not prefixes and config is not None:
        prefixes, weights = words.sources(invocation, config)
    if not prefixes:
        raise words.misused(invocation, "name the datasets, or the run: data=blend data.blend=[0.7,A,0.3,B]")
    split = words.numbers(invocation, "data.split", config.data.split, float) if config and config.data.split else [1.0]
    found = stats(prefixes, weights, split, words.run_of(invocation, config if overrides else None))
    if options.json:
        row = dataclasses.asdict(found)
        _print_json(datasets=row["shares"], run=row["run"], findings=found.findings)
    else:
        show_data.stats(found)
        render.findings(found.findings, as_json=False)
    return 0


def _print_json(findings: Iterable[Finding] = (), **answer: Any) -> None:
    rows = [finding.as_dict() for finding in findings]
    sys.stdout.write(orjson.dumps({**answer, "findings": rows}, option=orjson.OPT_NON_STR_KEYS).decode() + "\n")


ACTIONS = (
    Verb("inspect", "Describe datasets: counts, lengths of documents, and some documents, decoded with a tokenizer.",
         _inspect_options, _inspect),
    Verb("verify", "Check datasets: every rule of .bin and .idx, and with --deep every id.", _verify_options, _verify),
    Verb("merge", "Write one dataset from several: data merge A B -o OUT. It appears whole or not at all.",
         _merge_options, _merge),
    Verb("split", "Write several datasets from one, by documents: data split PREFIX --fractions 98,1,1.",
         _split_options, _split),
    Verb("stats", "Count the tokens of each dataset, and what a run takes of it: its weight and epochs.",
         _stats_options, _stats),
)  # fmt: skip
