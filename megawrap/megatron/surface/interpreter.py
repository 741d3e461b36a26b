"""What can be told of the Python that will run the target without starting it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
import sys
from pathlib import Path


def is_own(python: str | None) -> bool:
    """Whether it is the Python of this process."""
    return python is None or shutil.which(python) == sys.executable


def site_packages(python: str) -> list[Path]:
    """Folders with the packages of another Python, by the usual layout of an environment."""
    prefix = Path(shutil.which(python) or python).absolute().parent.parent
    return sorted(prefix.glob("lib/python3*/site-packages"))


def identity(python: str | None) -> str:
    """A word that changes when another Python would run the target, or torch has come or gone there."""
    if python is None or is_own(python):
        return f"{platform.python_version()} {importlib.util.find_spec('torch') is not None}"
    sites = site_packages(python)
    return f"{Path(shutil.which(python) or python).resolve()} {any((site / 'torch').is_dir() for site in sites)}"


def megatron_core(python: str | None) -> importlib.metadata.Distribution | None:
    """The megatron-core package of that Python; of this one when its own cannot be found from outside."""
    places = [] if python is None or is_own(python) else [str(site) for site in site_packages(python)]
    there = importlib.metadata.distributions(name="megatron-core", path=places) if places else ()
    here = importlib.metadata.distributions(name="megatron-core")
    return next(iter([*there, *here]), None)


def root_of(package: importlib.metadata.Distribution, python: str | None) -> Path | None:
    """The folder that holds its ``megatron/training``; ``None`` for a wheel without one (before 0.17)."""
    beside = [Path(str(package.locate_file("")))]
    # An editable installation lies elsewhere, where imports find it.
    spec = importlib.util.find_spec("megatron") if is_own(python) else None
    elsewhere = [Path(place).parent for place in (spec.submodule_search_locations or ())] if spec else []
    return next((one for one in [*beside, *elsewhere] if (one / "megatron/training/arguments.py").is_file()), None)
