"""Megatron's compiled dataset helpers, for the Python that runs. Imports nothing of Megatron."""

from __future__ import annotations

import importlib.util
import subprocess
import sysconfig
from pathlib import Path
from typing import Any


def build_for_this_python(datasets_utils: Any) -> None:
    """Make ``compile_helpers`` of ``megatron.core.datasets.utils`` build for the running interpreter, and only when it
    has none: the wheel ships them compiled, without the Makefile.

    Megatron's Makefile asks whatever ``python3`` and ``python3-config`` come first on PATH: a source tree run from an
    environment that is not activated would get helpers that cannot be imported.
    """
    folder = Path(datasets_utils.__file__).parent

    def compile_helpers() -> None:
        importlib.invalidate_caches()
        if importlib.util.find_spec("megatron.core.datasets.helpers_cpp") is not None:
            return
        import pybind11

        includes = f"-I{sysconfig.get_paths()['include']} -I{pybind11.get_include()}"
        words = ["make", "-C", str(folder), f"LIBEXT={sysconfig.get_config_var('EXT_SUFFIX')}", f"CPPFLAGS={includes}"]
        subprocess.run(words, check=True)
        importlib.invalidate_caches()

    datasets_utils.compile_helpers = compile_helpers
