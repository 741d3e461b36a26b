"""What a run takes of each of its datasets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

from megawrap.errors import ConfigError, Finding, errors
from megawrap.preprocess.indexed import header as headers
from megawrap.preprocess.indexed.reader import Index
from megawrap.preprocess.tools.names import absent, is_absent


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """How much a run takes in all: ``tokens``, in samples of ``seq_length`` tokens where that is known."""

    tokens: int
    seq_length: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Share:
    """One source of a run. ``training_tokens``: those that ``--split`` leaves for training. ``weight``: its part of
    the run, all together 1. ``drawn``: tokens that the run takes of it, ``epochs`` how often it sees each; None: there
    is no run, or nothing to train on."""

    prefix: str
    documents: int
    sequences: int
    tokens: int
    training_tokens: int
    weight: float
    drawn: int | None
    epochs: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class Stats:
    """All sources of a run, and what is worth knowing."""

    shares: tuple[Share, ...]
    run: Run | None
    findings: tuple[Finding, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _Counted:
    prefix: str
    documents: int
    sequences: int
    tokens: int
    training: int


def stats(
    prefixes: Sequence[str],
    weights: Sequence[float] = (),
    split: Sequence[float] = (1.0,),
    run: Run | None = None,
) -> Stats:
    """Count the tokens of ``prefixes`` and what ``run`` takes of each.

    Without ``weights`` Megatron draws in proportion to the sizes: from several datasets once, from a single one as
    often as it takes. ``split`` are the parts for training, validation and test, by sequences.

    Source: BlendedMegatronDatasetBuilder in Megatron-LM core_v0.19.0.

    Raises:
        ConfigError: a dataset is missing or broken, or there is not one weight for each.
    """
    problems = list(_misuse(prefixes, weights))
    counted = [one for prefix in prefixes if (one := _count(prefix, split, problems)) is not None]
    if problems:
        raise ConfigError(problems)
    parts = list(weights) or [float(one.training) for one in counted]
    whole, once = sum(parts), sum(one.training for one in counted)
    is_short = run is not None and len(counted) > 1 and not weights and run.tokens > once
    taken = Run(once) if is_short else run
    shares = tuple(_share(one, part / whole if whole else 0.0, taken) for one, part in zip(counted, parts, strict=True))
    return Stats(shares, run, tuple(_findings(shares, run, once if is_short else None)))


def _share(one: _Counted, weight: float, run: Run | None) -> Share:
    drawn = epochs = None
    if run is not None:
        drawn = round(run.tokens * weight)
        if run.seq_length:  # whole samples
            drawn = math.ceil(run.tokens // run.seq_length * weight - 1e-9) * run.seq_length
        epochs = drawn / one.training if one.training else None
    return Share(one.prefix, one.documents, one.sequences, one.tokens, one.training, weight, drawn, epochs)


def _count(prefix: str, split: Sequence[float], problems: list[Finding]) -> _Counted | None:
    found = [absent(prefix)] if is_absent(prefix) else headers.check(prefix)
    problems += found
    header, _ = headers.read(prefix)
    if errors(found) or header is None:
        return None
    index = Index.of(prefix, header)
    total = sum(split)
    sequences = round(split[0] / total * float(header.sequences))
    tokens = index.end // header.itemsize
    training = tokens if sequences >= header.sequences else int(index.pointers[sequences]) // header.itemsize
    return _Counted(prefix, header.documents, header.sequences, tokens, training)


def _misuse(prefixes: Sequence[str], weights: Sequence[float]) -> Iterator[Finding]:
    if weights and len(weights) != len(prefixes):
        message = f"{len(prefixes)} datasets and {len(weights)} weights: each dataset has one"
        yield Finding(id="MW668", message=message, keys=("--weights",))
    elif weights and (min(weights) < 0 or sum(weights) <= 0):
        message = "--weights: none can be negative, and one has to be more than 0"
        yield Finding(id="MW668", message=message, keys=("--weights",))


def _findings(shares: Sequence[Share], run: Run | None, once: int | None) -> Iterator[Finding]:
    for share in shares:
        if share.training_tokens == 0:
            message = f"{share.prefix} has no tokens to train on"
            yield Finding(id="MW669", severity="warning", message=message)
    if run is not None and once is not None:
        message = (
            f"the run takes {run.tokens:,} tokens, and without weights Megatron goes through several datasets "
            f"once, so that it ends after {once:,}"
        )
        yield Finding(id="MW669", severity="warning", message=message, nearest=("--weights W1,W2,...",))
