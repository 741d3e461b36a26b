"""Many datasets behind each other, as one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from megawrap.errors import ConfigError, Finding
from megawrap.preprocess.indexed.blocks import Advance, blocks, unheard
from megawrap.preprocess.staging import Staging, unwritable
from megawrap.preprocess.tools.copying import append
from megawrap.preprocess.tools.draft import Draft, Made, need_space, publish, written
from megawrap.preprocess.tools.lineage import common, mixed, record
from megawrap.preprocess.tools.names import refusals
from megawrap.preprocess.tools.source import Source, opened, sizes

OPTION = "--output"


def total_bytes(prefixes: Sequence[str]) -> int:
    """What ``merge`` tells ``advance`` in all: every index is read twice, once to check it."""
    index, data = sizes(prefixes)
    return 2 * index + data


def merge(
    prefixes: Sequence[str],
    output: str,
    *,
    overwrite: bool = False,
    mixed_allowed: bool = False,
    advance: Advance = unheard,
) -> Made:
    """Write ``output`` with the documents of ``prefixes``, in this order.

    The output is complete when this returns; when it raises, nothing has its name but what was there before.
    ``mixed_allowed``: also datasets whose manifests tell of different tokenizers.

    Raises:
        ConfigError: a dataset is missing or broken, they do not fit together, or there is no room for them.
        RunError: a dataset changed, or the output cannot be written.
    """
    if problems := list(_misuse(prefixes, output, overwrite)):
        raise ConfigError(problems)
    with opened(prefixes, advance) as sources:
        if problems := [*_unlike(sources), *([] if mixed_allowed else mixed(prefixes))]:
            raise ConfigError(problems)
        need_space(output, sum(source.total_bytes for source in sources))
        with Staging(output) as staging, written(output):
            return _write(sources, staging, output, advance)


def _write(sources: Sequence[Source], staging: Staging, output: str, advance: Advance) -> Made:
    first = sources[0]
    with Draft(staging, output, first.header.dtype, with_modes=first.has_modes) as draft:
        for source in sources:
            _append(source, draft, advance)
            source.must_be_unchanged()
        origin = common([source.prefix for source in sources])
        made = draft.finish(record("merge", origin, sources=[_counts(source) for source in sources]))
    publish(staging, [draft.moves])
    return made


def _append(source: Source, draft: Draft, advance: Advance) -> None:
    header = source.header
    append(source.data, draft.tokens.fileno(), 0, source.bytes, advance)
    append(source.index, draft.lengths.fileno(), header.lengths_at, 4 * header.sequences, advance)
    before = 0
    for bounds in blocks(Path(f"{source.prefix}.idx"), "<i8", header.documents, header.documents_at + 8):
        draft.add_documents(np.diff(bounds, prepend=before))
        before = int(bounds[-1])
        advance(bounds.nbytes)
    if draft.modes:
        append(source.index, draft.modes.fileno(), header.size, header.sequences, advance)


def _misuse(prefixes: Sequence[str], output: str, overwrite: bool) -> Iterator[Finding]:
    yield from refusals(output, prefixes, OPTION, overwrite=overwrite)
    if problem := unwritable(output):
        yield dataclasses.replace(problem, message=problem.message.replace("--output-prefix", OPTION), keys=(OPTION,))
    for prefix in sorted({prefix for prefix in prefixes if prefixes.count(prefix) > 1}):
        message = f"{prefix} is given twice; a blend of a run repeats a dataset without a copy of it"
        yield Finding(id="MW662", message=message)


def _unlike(sources: Sequence[Source]) -> Iterator[Finding]:
    """Datasets that cannot stand behind the first."""
    first = sources[0]
    for source in sources[1:]:
        if source.header.dtype != first.header.dtype:
            kinds = [np.dtype(one.header.dtype).name for one in (first, source)]
            message = f"{first.prefix} stores ids as {kinds[0]}, and {source.prefix} as {kinds[1]}: they do not merge"
            yield Finding(id="MW662", message=message)
        if source.has_modes != first.has_modes:
            with_modes, without = (first, source) if first.has_modes else (source, first)
            message = f"{with_modes.prefix} is multimodal, and {without.prefix} is not: they do not merge"
            yield Finding(id="MW662", message=message)


def _counts(source: Source) -> dict[str, object]:
    header = source.header
    return {
        "prefix": source.prefix,
        "documents": header.documents,
        "sequences": header.sequences,
        "tokens": source.tokens,
    }
