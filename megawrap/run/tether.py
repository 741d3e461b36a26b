"""Run a program that is told to end when its parent dies, even by SIGKILL: ``python tether.py PROGRAM ARGS``.

A program of its own and not a ``preexec_fn``, which is unsafe beside the thread that draws the progress bars.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(words: list[str]) -> None:
    """Become ``words``."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() == parent:  # else it died before the kernel knew
        os.execvp(words[0], words)


if __name__ == "__main__":
    main(sys.argv[1:])
