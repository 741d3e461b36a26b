"""``python -m megawrap.megatron.cpu (-m MODULE | SCRIPT) ARGUMENTS``: run a program under the stand-in."""

from __future__ import annotations

import importlib.util
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
    script = Path(words[0]).absolute()
    if not script.is_file():
        sys.exit(f"python -m megawrap.megatron.cpu: there is no file {words[0]}")
    # As `python SCRIPT` does: a Megatron-LM source tree imports its own megatron, not an installed one.
    sys.path.insert(0, str(script.parent))
    _expect_megatron_of(script.parent)
    sys.argv = words
    cpu.install()
    runpy.run_path(words[0], run_name="__main__")


def _expect_megatron_of(folder: Path) -> None:
    """Exit if the source tree in ``folder`` would be mixed with an installed Megatron: ``megatron`` is a namespace
    package, and an installed one that is not comes before it wherever it is on the path."""
    for part in ("core", "training"):
        if not (folder / "megatron" / part).is_dir():
            continue
        spec = importlib.util.find_spec(f"megatron.{part}")
        found = Path(spec.origin).parent if spec is not None and spec.origin else None
        if found is None or not found.samefile(folder / "megatron" / part):
            sys.exit(f"{folder} has its own megatron.{part}, but Python would import {found}: uninstall that one")


if __name__ == "__main__":
    main(sys.argv[1:])
