"""Which Megatron will run, and whose surface stands for it."""

from __future__ import annotations

import ast
import dataclasses
import importlib.metadata
import re
from pathlib import Path

from megawrap.config.sections.place import Megatron
from megawrap.errors import ConfigError, Finding
from megawrap.megatron.surface.releases import Release, release, releases
from megawrap.megatron.surface.surface import Surface


@dataclasses.dataclass(frozen=True)
class Target:
    """The Megatron of a plan. ``version`` is its own; ``release`` is the bundled release taken for its surface."""

    source: str
    version: str | None
    release: Release
    path: Path | None = None

    @property
    def surface(self) -> Surface:
        """The arguments it is taken to accept."""
        return self.release.surface

    @property
    def name(self) -> str:
        """For people: what it is, and whose arguments stand for it when they are not its own."""
        own = {"installed": "megatron-core", "checkout": f"checkout {self.path}", "release": self.release.id}
        if self.source == "release":
            return own["release"]
        if self.version is None:
            return f"no megatron-core here; planned for {self.release.id}"
        exact = "" if self.version == self.release.core else f", arguments of {self.release.id}"
        return f"{own[self.source]} {self.version}{exact}"


def resolve(megatron: Megatron) -> Target:
    """The target that the configuration asks for.

    Raises:
        ConfigError: when the checkout is not one, or the release is unknown.
    """
    if megatron.source == "release":
        chosen = release(megatron.release or "")
        return Target("release", chosen.core, chosen)
    if megatron.source == "checkout":
        return _checkout(megatron.path)
    version = _installed_version()
    return Target("installed", version, _nearest(version, "nvidia") if version else _newest("nvidia"))


def _installed_version() -> str | None:
    try:
        return importlib.metadata.version("megatron-core")
    except importlib.metadata.PackageNotFoundError:
        return None


def _checkout(path: str | None) -> Target:
    root = Path(path or "").expanduser().absolute()
    info, arguments = root / "megatron/core/package_info.py", root / "megatron/training/arguments.py"
    if not path or not info.is_file() or not arguments.is_file():
        missing = "is not set" if not path else f"= {path} is not a Megatron-LM source tree: no {info}"
        if path and info.is_file():
            missing = f"= {path} is not a whole Megatron-LM source tree: no {arguments}"
        raise ConfigError(Finding(id="MW012", keys=("megatron.path",), message=f"megatron.path {missing}"))
    version = _version_of(info)
    fork = "rocm" if "def get_patch_args" in arguments.read_text(encoding="utf-8") else "nvidia"
    return Target("checkout", version, _nearest(version, fork), root)


def _version_of(info: Path) -> str:
    values: dict[str, object] = {}
    for node in ast.parse(info.read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.targets[0], ast.Name)
        ):
            values[node.targets[0].id] = node.value.value
    numbers = ".".join(str(values.get(part, 0)) for part in ("MAJOR", "MINOR", "PATCH"))
    return f"{numbers}{values.get('PRE_RELEASE', '')}"


def _nearest(version: str, fork: str) -> Release:
    """The newest release of the fork that is not newer than ``version``, or else its oldest."""
    of_fork = [one for one in releases() if one.fork == fork]
    older = [one for one in of_fork if _order(one.core) <= _order(version)]
    return older[-1] if older else of_fork[0]


def _newest(fork: str) -> Release:
    numbered = [one for one in releases() if one.fork == fork and not one.id.startswith("main")]
    return numbered[-1]


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
