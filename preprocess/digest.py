"""SHA-256 of the input, beside the work."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from megawrap.preprocess.source import STDIN, Source, reading, standard_input

_BLOCK = 1 << 20


class Digest:
    """The hashes of some files, computed in a thread meanwhile. Leaving the ``with`` block early stops it.

    Standard input is hashed by whoever reads it.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sha256")
        self._futures = [self._pool.submit(sha256, source.path, self._stop) for source in sources if source.size]

    def __enter__(self) -> Digest:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stop.set()
        self._pool.shutdown()

    def result(self) -> list[str]:
        """Wait for the digests, in hexadecimal, one for each source.

        Raises:
            RunError: a file could not be read to its end.
        """
        if self._sources[0].path == STDIN:
            return [standard_input().digest.hexdigest()]
        digests = []
        for source, future in zip(self._sources, self._futures, strict=True):
            with reading(source.path):
                digests.append(future.result())
        return digests


def sha256(path: Path, stop: threading.Event | None = None) -> str:
    """SHA-256 of a file in hexadecimal, as ``sha256sum`` prints it (of its beginning, once ``stop`` is set)."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while (block := file.read(_BLOCK)) and not (stop and stop.is_set()):
            digest.update(block)
    return digest.hexdigest()
