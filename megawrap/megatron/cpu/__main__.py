"""``python -m megawrap.megatron.cpu (-m MODULE | SCRIPT) ARGUMENTS``: run a program under the stand-in."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from megawrap.megatron import cpu


def main(words: list[str]) -> None:
    """Run the program that ``words`` name as ``__main__``."""
    if not words or (words[0] == "-m" and len(words) < 2):
        sys.exit("usage: python -m megawrap.megatron.cpu (-m MODULE | SCRIPT) ARGUMENTS")
    if words[0] == "-m":
        sys.argv = words[1:]
        cpu.install()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    # As `python SCRIPT` does: a Megatron-LM source tree imports its own megatron, not an installed one.
    sys.path.insert(0, str(Path(words[0]).absolute().parent))
    sys.argv = words
    cpu.install()
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
