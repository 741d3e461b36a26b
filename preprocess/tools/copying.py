"""Bytes from file to file at the speed of the disk."""

from __future__ import annotations

import errno
import os

from megawrap.preprocess.indexed.blocks import Advance

STEP = 32 << 20
"""Bytes between two reports: a fraction of a second."""

# copy_file_range can do neither these files nor these file systems: the bytes go through our memory.
_CANNOT = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF)


def append(source: int, target: int, start: int, count: int, advance: Advance) -> None:
    """Copy ``count`` bytes of the descriptor ``source`` from byte ``start`` on to where ``target`` stands.

    The kernel copies, and where the file system can share blocks between files it writes nothing at all.

    Raises:
        OSError: a file cannot be read or written, or ``source`` ends before.
    """
    copy = _in_kernel
    while count:
        try:
            done = copy(source, target, start, min(count, STEP))
        except OSError as error:
            if copy is _through_memory or error.errno not in _CANNOT:
                raise
            copy = _through_memory
            continue
        if done == 0:
            if copy is _through_memory:
                raise OSError(errno.EIO, "a file became shorter while it was read")
            copy = _through_memory
        start += done
        count -= done
        advance(done)


def _in_kernel(source: int, target: int, start: int, count: int) -> int:
    return os.copy_file_range(source, target, count, start)


def _through_memory(source: int, target: int, start: int, count: int) -> int:
    data = os.pread(source, min(count, 1 << 20), start)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(target, rest) :]
    return len(data)
