"""JSON lines to .bin/.idx with several processes: validate, encode, index, publish.

The input is cut into chunks of whole lines. Workers read, encode and keep a chunk each; once the sizes of all chunks
before it are known, they write its tokens at their place in the one .bin. No token passes through a pipe or becomes a
Python object, and the output does not depend on the number of workers.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from megawrap import __version__
from megawrap.errors import Finding, RunError
from megawrap.preprocess import manifest
from megawrap.preprocess.conversation import Conversation, Progress
from megawrap.preprocess.indexed.writer import write_index
from megawrap.preprocess.manifest import Manifest, Origin, Output
from megawrap.preprocess.messages import Chunk, Job, Rejected, Sizes, Target
from megawrap.preprocess.pool import Pool
from megawrap.preprocess.prepare import Prepared, prepare
from megawrap.preprocess.schedule import Schedule
from megawrap.preprocess.settings import Settings
from megawrap.preprocess.source import Digest, Source, chunks, line_number
from megawrap.preprocess.staging import Staging

LARGEST_CHUNK = 1 << 20
"""Bytes of text in a chunk. It bounds the memory of a worker, and has no influence on the output."""
SMALLEST_CHUNK = 1 << 16


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
    with Staging(settings.output_prefix) as staging, Digest(prepared.source.path) as digest:
        with _written(settings.output_prefix):
            targets = tuple(_target(staging, settings, key) for key in settings.json_keys)
        totals = _encode(prepared, targets, report)
        made = _manifest(prepared, totals, digest)
        with _written(settings.output_prefix):
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


def _target(staging: Staging, settings: Settings, key: str) -> Target:
    names = (f"{key}.bin", f"{key}.lengths", f"{key}.ends")
    return Target(key, settings.prefix(key), *(staging.new(name) for name in names))


def _encode(prepared: Prepared, targets: tuple[Target, ...], report: Callable[[Progress], None] | None) -> list[Sizes]:
    """Encode the whole input into the files of ``targets``, and tell how much each holds."""
    settings = prepared.settings
    job = Job(prepared.source.path, settings.tokenizer, prepared.eod, prepared.dtype, targets)
    target = min(LARGEST_CHUNK, max(SMALLEST_CHUNK, prepared.source.size // (16 * settings.workers)))
    schedule = Schedule(_chunks(prepared, target), len(targets))
    with Pool(min(settings.workers, -(-prepared.total_bytes // target)), job) as pool:
        Conversation(schedule, pool, prepared.total_bytes, report).loop()
    if schedule.rejected:
        raise RunError(_bad_line(prepared.source, schedule.first_rejected))
    return schedule.totals


def _chunks(prepared: Prepared, target: int) -> Iterator[Chunk]:
    """The whole input for the first key, then for the second, and so on."""
    count = itertools.count()
    for number, _ in enumerate(prepared.settings.json_keys):
        for start, end in chunks(prepared.source, target):
            yield Chunk(next(count), number, start, end)


def _manifest(prepared: Prepared, totals: list[Sizes], digest: Digest) -> Manifest:
    settings, tokenizer = prepared.settings, prepared.tokenizer
    outputs = tuple(
        Output(
            key=key,
            dtype=prepared.dtype,
            documents=total.documents,
            sequences=total.sequences,
            tokens=total.tokens,
            blank_lines=total.blank,
        )
        for key, total in zip(settings.json_keys, totals, strict=True)
    )
    for output in outputs:
        if output.tokens == 0:
            raise RunError(_no_tokens(settings.input, output))
    origin = Origin(
        input_bytes=prepared.source.size,
        input_sha256=digest.result(),
        tokenizer_type=settings.tokenizer.type,
        tokenizer_sha256=tokenizer.fingerprint,
        vocab_size=tokenizer.vocab_size,
        append_eod=settings.append_eod,
    )
    return Manifest(megawrap=__version__, engine=tokenizer.engine, origin=origin, outputs=outputs)


def _finish(staging: Staging, prepared: Prepared, targets: tuple[Target, ...], made: Manifest) -> None:
    """Write the indices and manifests, and move everything to its place: data, indices, manifests."""
    data, indices, manifests = [], [], []
    for target, output in zip(targets, made.outputs, strict=True):
        index, record = staging.new(f"{target.key}.idx"), staging.new(f"{target.key}.json")
        write_index(index, prepared.dtype, target.lengths, target.ends)
        record.write_bytes(made.pack(output))
        data.append((target.tokens, Path(f"{target.name}.bin")))
        indices.append((index, Path(f"{target.name}.idx")))
        manifests.append((record, manifest.path(target.name)))
    if not prepared.source.unchanged():
        raise RunError(_changed(prepared.source.path))
    staging.publish([*data, *indices, *manifests])


def _bad_line(source: Source, rejected: Rejected) -> Finding:
    if not source.unchanged():  # then the line may be bad for no other reason
        return _changed(source.path)
    where = f"{source.path}, line {line_number(source.path, rejected.offset)} (byte {rejected.offset})"
    return Finding(id="MW605", message=f"{where}: {rejected.reason}", keys=("--input",))


def _changed(path: Path) -> Finding:
    message = f"{path} changed while it was read; nothing was written"
    return Finding(id="MW607", message=message, keys=("--input",))


def _no_tokens(path: Path, output: Output) -> Finding:
    what = f"all {output.documents} documents are empty" if output.documents else "there are only blank lines"
    return Finding(id="MW606", message=f"{path} gives no tokens: {what} (key {output.key})", keys=("--input",))
