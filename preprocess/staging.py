"""Outputs come into being beside their place and are moved there complete.

All files of a run are made in a hidden folder next to the output, ``.NAME.partial``. It is locked, so that two runs do
not write the same output at once; the lock goes with the process. What a killed run leaves is used up by the next one,
which goes on from there if it is told to (``journal``).
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from megawrap.errors import ConfigError, Finding

# Some network file systems have no locks; there, nothing guards against a second run.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def unwritable(prefix: str) -> Finding | None:
    """Why nothing can be written at ``prefix``; None if it seems that it can. Makes nothing."""
    folder = existing_folder(prefix)
    if not folder.is_dir():
        return _refused(prefix, f"{folder} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        return _refused(prefix, f"{folder} cannot be written to")
    return None


def existing_folder(prefix: str) -> Path:
    """The folder that ``prefix`` is in, or the first one above that exists."""
    folder = staging_folder(prefix).absolute().parent
    while not folder.exists() and not folder.is_symlink():
        folder = folder.parent
    return folder


def staging_folder(prefix: str) -> Path:
    """Where the files of a run come into being."""
    target = Path(f"{prefix}.partial")
    return target.parent / f".{target.name}"


def _refused(prefix: str, reason: str | None) -> Finding:
    return Finding(id="MW620", message=f"--output-prefix {prefix}: {reason}", keys=("--output-prefix",))


class Staging:
    """The folder of a run. Leaving the ``with`` block removes it with all that was not published; by an error, and
    with ``keep``, it stays."""

    def __init__(self, prefix: str, *, keep: bool = False) -> None:
        """Make the folder, empty; with ``keep``, use what is there.

        Raises:
            ConfigError: it cannot be made, or another run is writing to the same prefix.
        """
        self.prefix = prefix
        self._keep = keep
        self.folder = staging_folder(prefix)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = self._take_lock()
            if not keep:
                self.empty()
        except OSError as error:
            raise ConfigError(_refused(prefix, error.strerror)) from None

    def _take_lock(self) -> int:
        path = self.folder / "lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The run that had the lock may have removed the folder between our two calls.
            taken = os.path.samestat(os.fstat(descriptor), path.stat())
        except OSError as error:
            taken = error.errno in _NO_LOCKS
        if not taken:
            os.close(descriptor)
            raise ConfigError(self._busy())
        return descriptor

    def _busy(self) -> Finding:
        message = f"--output-prefix {self.prefix}: another run is writing there now"
        return Finding(id="MW621", message=message, keys=("--output-prefix",))

    def empty(self) -> None:
        """Remove what an earlier run has left.

        Raises:
            OSError: a file cannot be removed.
        """
        for left in self.folder.iterdir():
            if left.name != "lock":
                left.unlink()

    def new(self, name: str) -> Path:
        """A file in the folder: empty, or as an earlier run has left it.

        Raises:
            OSError: it cannot be made.
        """
        path = self.folder / name
        path.touch()
        return path

    def publish(self, moves: Sequence[tuple[Path, Path]], obsolete: Sequence[Path] = ()) -> None:
        """Move finished files to their places, in this order, after taking away what is there, in the reverse order;
        and what is ``obsolete``.

        With the manifest behind the index and the index behind the data, there is never an index whose data is not
        the one it describes. Killed between the two, data without an index is left, which nothing takes for a dataset.

        Raises:
            OSError: a file cannot be moved.
        """
        for made, _ in moves:  # first of all, because it takes long
            _flush(made)
        for final in (*(final for _, final in reversed(moves)), *obsolete):
            final.unlink(missing_ok=True)
        _flush(self.folder.parent)
        for made, final in moves:
            made.rename(final)
            _flush(final.parent)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None or not self._keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


def _flush(path: Path) -> None:
    """Bring a file's data, or a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
