"""JSON lines to .bin/.idx with several processes: validate, encode, index, publish.

The input is cut into chunks of whole lines. Workers read, encode and keep a chunk each; once the sizes of all chunks
before it are known, they write its tokens at their place in the one .bin. No token passes through a pipe or becomes a
Python object, and the output does not depend on the number of workers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from megawrap import __version__
from megawrap.errors import Finding, RunError
from megawrap.preprocess import manifest, rejects
from megawrap.preprocess.chunks import chunks
from megawrap.preprocess.conversation import Conversation, Progress, Records
from megawrap.preprocess.digest import Digest
from megawrap.preprocess.indexed.writer import write_index
from megawrap.preprocess.journal import Finished, Journal
from megawrap.preprocess.manifest import InputFile, Manifest, Origin, Output
from megawrap.preprocess.memory import give_back
from megawrap.preprocess.messages import Job, Sizes, Target
from megawrap.preprocess.pool import Pool
from megawrap.preprocess.prepare import Prepared, prepare
from megawrap.preprocess.rejects import Rejects
from megawrap.preprocess.schedule import Schedule
from megawrap.preprocess.settings import Settings
from megawrap.preprocess.source import STDIN, standard_input
from megawrap.preprocess.staging import Staging

LARGEST_CHUNK = 1 << 20
"""Bytes of text in a chunk. It bounds the memory of a worker, and has no influence on the output."""
SMALLEST_CHUNK = 1 << 16
WORKER_MEMORY = 205 << 20
"""Bytes of memory beyond which a worker is replaced. Word caches of encoders and the allocator's leftovers grow."""


def run(settings: Settings, report: Callable[[Progress], None] | None = None) -> Manifest:
    """Tokenize, and tell ``report`` a few times a second how far it is.

    The output is complete when this returns; when it raises, nothing has the final names but an earlier output.

    Raises:
        ConfigError: the settings, the input or the tokenizer are wrong.
        RunError: a line of the input cannot be used, a file cannot be written, or a worker has died.
    """
    return execute(prepare(settings), report)


def execute(prepared: Prepared, report: Callable[[Progress], None] | None = None) -> Manifest:
    """The work of ``run`` after its checks."""
    settings = prepared.settings
    give_back()  # what the tokenizers took that were compared
    with (
        Staging(settings.output_prefix, keep=settings.resume) as staging,
        Digest(prepared.sources) as digest,
        _written(settings.output_prefix),
    ):
        rejected = Rejects(staging.folder / "rejected.jsonl", prepared.sources, settings.allowed_errors)
        totals, targets = _encode(prepared, staging, rejected, report)
        made = _manifest(prepared, totals, digest, rejected.counts)
        _finish(staging, prepared, targets, made)
    return made


@contextlib.contextmanager
def _written(prefix: str) -> Iterator[None]:
    """An error of the operating system while the output is written is a failed run."""
    try:
        yield
    except OSError as error:
        message = f"{prefix} cannot be written: {error.strerror}"
        raise RunError(Finding(id="MW622", message=message, keys=("--output-prefix",))) from None


def _encode(
    prepared: Prepared, staging: Staging, rejected: Rejects, report: Callable[[Progress], None] | None
) -> tuple[tuple[Sizes, ...], tuple[Target, ...]]:
    """Encode the whole input into files of ``staging``, and tell how much each holds."""
    settings, sources = prepared.settings, prepared.sources
    identity = _identity(prepared)
    finished = Finished.of(staging.folder, identity) if settings.resume else None
    if finished is None:
        staging.empty()
    targets = tuple(_target(staging, settings, key) for key in settings.json_keys)
    if finished is not None:
        finished.open(targets, prepared.dtype)
    target = finished.target if finished else _chunk_size(prepared)
    inputs = tuple(source.path for source in sources)
    job = Job(inputs, prepared.recipe, prepared.eod, prepared.dtype, targets, WORKER_MEMORY)
    schedule = Schedule(chunks(sources, settings.json_keys, target), len(targets), finished)
    workers = min(settings.workers, -(-prepared.total_bytes // target) or settings.workers)
    with (
        Journal(staging.folder, identity, target, append=finished is not None) as journal,
        Pool(workers, job) as pool,
        _blaming_changes(prepared),
    ):
        records = Records(journal, finished, rejected)
        Conversation(schedule, pool, records, prepared.total_bytes, report).loop()
    return schedule.totals, targets


def _chunk_size(prepared: Prepared) -> int:
    """Small enough that every worker gets many, where the input is small."""
    share = prepared.total_bytes // (16 * prepared.settings.workers)
    return min(LARGEST_CHUNK, max(SMALLEST_CHUNK, share))


def _target(staging: Staging, settings: Settings, key: str) -> Target:
    names = (f"{key}.bin", f"{key}.lengths", f"{key}.ends")
    return Target(key, settings.prefix(key), *(staging.new(name) for name in names))


def _identity(prepared: Prepared) -> dict[str, Any]:
    """What has to be the same for a run to go on where another one ended."""
    settings, tokenizer = prepared.settings, prepared.tokenizer
    return {
        "manifest": manifest.FORMAT,
        "megawrap": __version__,
        "inputs": [[str(source.path.absolute()), source.size, _changed_at(source.path)] for source in prepared.sources],
        "keys": list(settings.json_keys),
        "tokenizer": [settings.tokenizer.type, tokenizer.fingerprint, tokenizer.vocab_size, tokenizer.engine],
        "eod": prepared.eod,
    }


def _changed_at(path: Path) -> int:
    """When a file was last changed in any way. Unlike the time of its content, nobody can set this one."""
    return 0 if path == STDIN else path.stat().st_ctime_ns


@contextlib.contextmanager
def _blaming_changes(prepared: Prepared) -> Iterator[None]:
    """When the input changed meanwhile, what a run fails of may be for no other reason."""
    try:
        yield
    except RunError:
        _check_unchanged(prepared)
        raise


def _check_unchanged(prepared: Prepared) -> None:
    for source in prepared.sources:
        if not source.unchanged():
            message = f"{source.path} changed while it was read; nothing was written"
            raise RunError(Finding(id="MW607", message=message, keys=("--input",)))


def _manifest(prepared: Prepared, totals: tuple[Sizes, ...], digest: Digest, rejected: Mapping[str, int]) -> Manifest:
    settings, tokenizer = prepared.settings, prepared.tokenizer
    outputs = tuple(
        Output(
            key=key,
            dtype=prepared.dtype,
            documents=total.documents,
            sequences=total.sequences,
            tokens=total.tokens,
            blank_lines=total.blank,
            rejected_lines=total.rejected,
        )
        for key, total in zip(settings.json_keys, totals, strict=True)
    )
    for output in outputs:
        if output.tokens == 0:
            raise RunError(_no_tokens(settings.input, output))
    origin = Origin(
        inputs=_inputs(prepared, digest),
        tokenizer_type=settings.tokenizer.type,
        tokenizer_sha256=tokenizer.fingerprint,
        vocab_size=tokenizer.vocab_size,
        append_eod=settings.append_eod,
    )
    return Manifest(
        megawrap=__version__, engine=tokenizer.engine, origin=origin, outputs=outputs, rejected=dict(rejected)
    )


def _inputs(prepared: Prepared, digest: Digest) -> tuple[InputFile, ...]:
    return tuple(
        InputFile(
            name=source.path.name,
            bytes=standard_input().size if source.path == STDIN else source.size,
            sha256=sha256,
        )
        for source, sha256 in zip(prepared.sources, digest.result(), strict=True)
    )


def _finish(staging: Staging, prepared: Prepared, targets: tuple[Target, ...], made: Manifest) -> None:
    """Write the indices and manifests, and move everything to its place: data, indices, rejected lines, manifests."""
    data, indices, manifests = [], [], []
    for target, output in zip(targets, made.outputs, strict=True):
        index, record = staging.folder / f"{target.key}.idx", staging.folder / f"{target.key}.json"
        write_index(index, prepared.dtype, target.lengths, target.ends)
        record.write_bytes(made.pack(output))
        data.append((target.tokens, Path(f"{target.name}.bin")))
        indices.append((index, Path(f"{target.name}.idx")))
        manifests.append((record, manifest.path(target.name)))
    told = rejects.final(prepared.settings.output_prefix)
    skipped = [(staging.folder / "rejected.jsonl", told)] if made.rejected else []
    _check_unchanged(prepared)
    staging.publish([*data, *indices, *skipped, *manifests], obsolete=[] if skipped else [told])


def _no_tokens(path: Path, output: Output) -> Finding:
    if output.documents:
        what = f"all {output.documents} documents are empty"
    else:
        what = "all lines were skipped" if output.rejected_lines else "there are only blank lines"
    return Finding(id="MW606", message=f"{path} gives no tokens: {what} (key {output.key})", keys=("--input",))
