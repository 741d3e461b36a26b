"""One dataset into several, by documents."""

from __future__ import annotations

import dataclasses
import mmap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from megawrap.errors import ConfigError, Finding
from megawrap.preprocess.indexed.blocks import Advance, unheard
from megawrap.preprocess.staging import Staging, unwritable
from megawrap.preprocess.tools.assign import STRATUM, Assigner, quotas
from megawrap.preprocess.tools.draft import Draft, Made, need_space, publish, written
from megawrap.preprocess.tools.lineage import lineage, record
from megawrap.preprocess.tools.names import refusals
from megawrap.preprocess.tools.source import Documents, Source, opened, sizes

OPTION = "--output"
_NAMES = {2: ("train", "valid"), 3: ("train", "valid", "test")}


def total_bytes(prefix: str) -> int:
    """What ``split`` tells ``advance`` in all: the index, to check it, and then the data."""
    return sum(sizes([prefix]))


def part_names(count: int) -> tuple[str, ...]:
    """What the parts are called where nobody says it."""
    return _NAMES.get(count, tuple(map(str, range(count))))


def split(
    prefix: str,
    shares: Sequence[Fraction],
    output: str,
    *,
    names: Sequence[str] = (),
    seed: int | None = None,
    overwrite: bool = False,
    advance: Advance = unheard,
) -> list[Made]:
    """Write ``OUTPUT_NAME`` for each share of the documents of ``prefix``; each part keeps their order.

    Without ``seed`` the first documents are the first part, as Megatron's own ``--split`` does it; with one, documents
    are drawn. All parts are complete when this returns; when it raises, none has its name.

    Raises:
        ConfigError: what is asked is wrong, the dataset is broken, a part would be empty, or there is no room.
        RunError: the dataset changed, or the output cannot be written.
    """
    outputs = [f"{output}_{name}" for name in names or part_names(len(shares))]
    if problems := list(_misuse(prefix, shares, outputs, overwrite)):
        raise ConfigError(problems)
    with opened([prefix], advance) as (source,):
        counts = quotas(shares, source.header.documents)
        if problems := list(_empty(outputs, counts, source)):
            raise ConfigError(problems)
        need_space(output, source.total_bytes)
        with Staging(output) as staging, written(output):
            return _write(source, staging, outputs, Assigner(counts, seed), seed, advance)


def _write(
    source: Source, staging: Staging, outputs: Sequence[str], parts: Assigner, seed: int | None, advance: Advance
) -> list[Made]:
    with ExitStack() as stack:
        drafts = [
            stack.enter_context(Draft(staging, output, source.header.dtype, with_modes=source.has_modes))
            for output in outputs
        ]
        _deal(source, drafts, parts, advance)
        source.must_be_unchanged()
        origin = lineage(source.prefix)
        done = [draft.finish(record("split", origin, source=source.prefix, seed=seed)) for draft in drafts]
    publish(staging, [draft.moves for draft in drafts])
    return done


def _deal(source: Source, drafts: Sequence[Draft], parts: Assigner, advance: Advance) -> None:
    if source.bytes == 0:  # nothing to map, and documents without tokens all the same
        for documents in source.documents(STRATUM):
            _deal_index(source, documents, drafts, parts.next(len(documents.counts)))
        return
    with mmap.mmap(source.data, 0, prot=mmap.PROT_READ) as mapped:
        for documents in source.documents(STRATUM):
            labels = parts.next(len(documents.counts))
            with memoryview(mapped) as view:
                _deal_tokens(source, documents, drafts, labels, view)
            _deal_index(source, documents, drafts, labels)
            mapped.madvise(mmap.MADV_DONTNEED)  # what is behind us counts as our memory until it is let go
            advance(int(documents.tokens.sum()) * source.header.itemsize)


def _deal_tokens(
    source: Source, documents: Documents, drafts: Sequence[Draft], labels: npt.NDArray[np.intp], view: memoryview
) -> None:
    """Copy ids, as many documents at once as stand behind each other and go to one part."""
    ends = documents.start + np.cumsum(documents.tokens) * source.header.itemsize
    last = np.flatnonzero(np.append(labels[1:] != labels[:-1], True))
    start = documents.start
    for part, end in zip(labels[last].tolist(), ends[last].tolist(), strict=True):
        drafts[part].copy_tokens(source.data, view, start, end)
        start = end


def _deal_index(source: Source, documents: Documents, drafts: Sequence[Draft], labels: npt.NDArray[np.intp]) -> None:
    of_sequences = np.repeat(labels, documents.counts)
    modes = source.modes(documents) if source.has_modes else None
    for part, draft in enumerate(drafts):
        draft.add_documents(documents.counts[labels == part])
        draft.lengths.write(documents.lengths[of_sequences == part].tobytes())
        if draft.modes and modes is not None:
            draft.modes.write(modes[of_sequences == part].tobytes())


def _misuse(prefix: str, shares: Sequence[Fraction], outputs: Sequence[str], overwrite: bool) -> Iterator[Finding]:
    if len(outputs) != len(shares):
        message = f"{len(shares)} fractions and {len(outputs)} names: each part has one of both"
        yield Finding(id="MW666", message=message, keys=("--fractions", "--names"))
    if len(shares) < 2 or min(shares) <= 0:
        message = "--fractions: two or more numbers, each of them more than 0"
        yield Finding(id="MW666", message=message, keys=("--fractions",), nearest=("--fractions 98,1,1",))
    if len(set(outputs)) < len(outputs):
        yield Finding(id="MW666", message="--names: two parts cannot have one name", keys=("--names",))
    for output in outputs:
        yield from refusals(output, [prefix], OPTION, overwrite=overwrite)
    if problem := unwritable(outputs[0]):
        yield dataclasses.replace(problem, message=problem.message.replace("--output-prefix", OPTION), keys=(OPTION,))


def _empty(outputs: Sequence[str], counts: Sequence[int], source: Source) -> Iterator[Finding]:
    for output, count in zip(outputs, counts, strict=True):
        if count == 0:
            message = f"{output} would get none of {source.prefix}'s {source.header.documents} documents"
            yield Finding(id="MW666", message=message, keys=("--fractions",))
