"""Megatron's compiled dataset helpers, for the Python that runs. Imports nothing of Megatron."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path
from typing import Any


def build_for_this_python(datasets_utils: Any) -> None:
    """Make ``compile_helpers`` of ``megatron.core.datasets.utils`` build for the running interpreter.

    Megatron's Makefile asks whatever ``python3`` and ``python3-config`` come first on PATH, which in a virtual
    environment are often those of another Python. The wheel has the helpers compiled, and no Makefile.
    """
    folder = Path(datasets_utils.__file__).parent

    def compile_helpers() -> None:
        if not (folder / "Makefile").exists():
            return
        import pybind11

        includes = f"-I{pybind11.get_include()} -I{sysconfig.get_paths()['include']}"
        words = ["make", "-C", str(folder), f"LIBEXT={sysconfig.get_config_var('EXT_SUFFIX')}", f"CPPFLAGS={includes}"]
        subprocess.run(words, check=True)

    datasets_utils.compile_helpers = compile_helpers
