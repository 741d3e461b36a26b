"""How much memory this process takes, and how it gives some back."""

from __future__ import annotations

import ctypes
import os


def resident() -> int:
    """Bytes of memory that this process takes now."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 (called for every batch)
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def give_back() -> None:
    """Have the C library return to the system what has been freed, where it can: glibc keeps it otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
