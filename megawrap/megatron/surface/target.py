"""Which Megatron will run, and whose surface stands for it."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

from megawrap.config.sections.place import Megatron
from megawrap.errors import ConfigError, Finding
from megawrap.megatron.surface.correct import Correction, correct
from megawrap.megatron.surface.interpreter import megatron_core, root_of
from megawrap.megatron.surface.releases import Release, release, releases
from megawrap.megatron.surface.surface import Surface

_OWN = {"bundled": "of {}", "fingerprint": "as in {}", "parser": "from its parser", "source": "from its source"}


@dataclasses.dataclass(frozen=True)
class Target:
    """The Megatron of a plan. ``version`` is its own; ``release`` is the bundled release nearest to it. ``correction``
    is what the target itself tells of its arguments; without one the release's stand for them."""

    source: str
    version: str | None
    release: Release
    path: Path | None = None
    correction: Correction | None = None

    @property
    def surface(self) -> Surface:
        """The arguments it accepts."""
        return self.correction.surface if self.correction else self.release.surface

    @property
    def way(self) -> str:
        """Where its arguments are from: bundled, fingerprint, parser or source."""
        return self.correction.way if self.correction else "bundled"

    @property
    def name(self) -> str:
        """For people: what it is, and where its arguments are from when it is not a release."""
        if self.source == "release":
            return self.release.id
        if self.version is None:
            return f"no megatron-core here; planned for {self.release.id}"
        own = "megatron-core" if self.source == "installed" else f"checkout {self.path}"
        return f"{own} {self.version} (arguments {_OWN[self.way].format(self.release.id)})"

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, documented in docs/json.md."""
        return {"name": self.name, "release": self.release.id, "version": self.version, "way": self.way}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """A warning when the arguments could not be had from the target itself."""
        if self.correction is None or self.way != "bundled":
            return ()
        message = f"{self.name}: it could not tell its own ({'; '.join(self.correction.reasons)})"
        return (Finding(id="MW017", severity="warning", keys=("megatron.path",), message=message),)


def resolve(megatron: Megatron, python: str | None = None, *, way: str | None = None, refresh: bool = False) -> Target:
    """The target that the configuration asks for. ``python`` is the interpreter that will run it, this one when not
    given. ``way`` and ``refresh`` are those of ``correct``.

    Raises:
        ConfigError: when the checkout is not one, or the release is unknown.
    """
    if megatron.source == "release":
        chosen = release(megatron.release or "")
        return Target("release", chosen.core, chosen)
    if megatron.source == "checkout":
        path, version, nearest = _checkout(megatron.path)
        found = correct(path, nearest, python, way=way, refresh=refresh)
        return Target("checkout", version, found.release, path, found)
    package = megatron_core(python)
    if package is None:
        return Target("installed", None, _newest("nvidia"))
    root, nearest = root_of(package, python), _nearest(package.version, "nvidia")
    if root is None:
        return Target("installed", package.version, nearest)
    found = correct(root, nearest, python, way=way, refresh=refresh)
    return Target("installed", package.version, found.release, correction=found)


def _checkout(path: str | None) -> tuple[Path, str, Release]:
    root = Path(path or "").expanduser().absolute()
    info, arguments = root / "megatron/core/package_info.py", root / "megatron/training/arguments.py"
    try:
        missing = _missing(path, info, arguments)
        if missing is None:
            version = _version_of(info)
            fork = "rocm" if b"def get_patch_args" in arguments.read_bytes() else "nvidia"
            return root, version, _nearest(version, fork)
    except (OSError, SyntaxError, ValueError) as problem:
        missing = f"= {path} cannot be read: {problem}"
    raise ConfigError(Finding(id="MW012", keys=("megatron.path",), message=f"megatron.path {missing}"))


def _missing(path: str | None, info: Path, arguments: Path) -> str | None:
    if not path:
        return "is not set"
    if not info.is_file():
        return f"= {path} is not a Megatron-LM source tree: no {info}"
    return None if arguments.is_file() else f"= {path} is not a whole Megatron-LM source tree: no {arguments}"


def _version_of(info: Path) -> str:
    values: dict[str, object] = {}
    for node in ast.parse(info.read_bytes()).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.targets[0], ast.Name)
        ):
            values[node.targets[0].id] = node.value.value
    numbers = ".".join(str(values.get(part, 0)) for part in ("MAJOR", "MINOR", "PATCH"))
    return f"{numbers}{values.get('PRE_RELEASE', '')}"


def _nearest(version: str, fork: str) -> Release:
    """The newest release of the fork that is of the same minor version or an older one, or else its oldest."""
    of_fork = [one for one in releases() if one.fork == fork]
    older = [one for one in of_fork if _order(one.core) <= _order(version)]
    return older[-1] if older else of_fork[0]


def _newest(fork: str) -> Release:
    numbered = [one for one in releases() if one.fork == fork and not one.id.startswith("main")]
    return numbered[-1]


def _order(version: str) -> tuple[int, ...]:
    """Major and minor: a patch release changes few arguments, or none."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
