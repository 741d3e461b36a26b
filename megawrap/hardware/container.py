"""What the container that the ranks run in can do: versions read from the packages of the Python that runs them, or
declared in the configuration. What is not visible is not judged."""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from megawrap.errors import Finding, nearest
from megawrap.hardware.checks import finding
from megawrap.hardware.conditions import holds, version

_NEEDS = Path(__file__).with_name("container_needs.json")
_IMAGES = Path(__file__).with_name("containers.json")
_PACKAGES = {
    "torch": "torch",
    "te": "transformer-engine",
    "flash_attn": "flash-attn",
    "triton": "triton",
    "ck": "aiter",
}
IMAGE = "image"
KEYS = (*_PACKAGES, "rocm", "aotriton")
ABSENT = "absent"


@dataclasses.dataclass(frozen=True)
class Container:
    """Component → version, or ``absent``; what is not among them is not known. ``said_by`` tells where it is from."""

    versions: Mapping[str, str]
    said_by: str


def container(
    declared: Mapping[str, Any], places: tuple[str, ...] | None, *, on_gpu_machine: bool, root: Path
) -> Container:
    """The container of a plan. ``declared`` is the configuration's ``cluster.container``, whose values win over those
    of the image it names. Without it, the packages in the folders ``places`` (``None``: this Python's) are looked at,
    unless this is another machine than the ranks': a laptop's packages say nothing about a cluster. ``root`` is where
    ROCm's files are looked for."""
    if declared:
        own = {key: str(value) if value not in (None, False) else ABSENT for key, value in declared.items()}
        image = own.pop(IMAGE, "")
        return Container({**_images().get(image, {}), **own}, "cluster.container")
    seen = _seen(places)
    # Whoever has Transformer Engine is a training container, also on a login node; a GPU's machine with torch is one.
    if "te" in seen or ("torch" in seen and on_gpu_machine):
        missing = {key: ABSENT for key in ("te", "flash_attn") if key not in seen}
        return Container({**seen, **missing, **_rocm(root, seen.get("torch", ""))}, "its packages")
    return Container({}, "nothing")


def undeclarable(declared: Mapping[str, Any]) -> Iterator[Finding]:
    """Keys of ``cluster.container`` that mean nothing, and values that are no version."""
    for key, value in declared.items():
        name = f"cluster.container.{key}"
        if key not in (*KEYS, IMAGE):
            close = tuple(f"cluster.container.{one}" for one in nearest(str(key), (*KEYS, IMAGE)))
            message = f"{name}: a container is declared by {', '.join((IMAGE, *KEYS))}"
            yield finding("MW522", message, (name,), nearest=close)
        elif isinstance(value, float):
            # 2.10 and 2.1 are one number to YAML and to Hydra's overrides, and two versions to a package.
            message = f"{name} = {value}: that may be {value} or {value}0; write three numbers"
            yield finding("MW522", message, (name,), nearest=(f"{name}={value}.0", f"{name}={value}0.0"))
        elif key != IMAGE and value not in (None, False, ABSENT) and not version(value):
            message = f"{name} = {value}: a version such as 2.1, or {ABSENT}"
            yield finding("MW522", message, (name,))


def unmet(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """What the configuration asks for and the container, or the GPU, cannot do. ``facts`` holds the versions too."""
    for row in _needs():
        (name, wanted), *_ = row["need"].items()
        if holds(row["when"], facts) and facts.get(name) is not None and not _met(wanted, name, facts):
            said = row["says"].format_map(
                {**facts, "have": f"none ({ABSENT})" if facts[name] == ABSENT else facts[name]}
            )
            yield finding(row["id"], said, tuple(row["keys"]), nearest=tuple(row["nearest"]))


def _met(wanted: Any, name: str, facts: Mapping[str, Any]) -> bool:
    return facts[name] != ABSENT and holds({name: wanted}, facts)


@functools.lru_cache(maxsize=16)
def _seen(places: tuple[str, ...] | None) -> Mapping[str, str]:
    """Kept for the process: a search plans thousands of times, and packages do not come and go under it."""
    found = {key: _distribution(name, places) for key, name in _PACKAGES.items()}
    seen = {key: one.version for key, one in found.items() if one is not None}
    for key, folder in (("te", "transformer_engine"), ("torch", "torch")):
        package = found[key]
        for file in sorted(Path(str(package.locate_file(folder))).glob("lib/libaotriton*.so*")) if package else ():
            number = re.search(r"\.so\.([\d.]+)$", file.name)
            seen["aotriton"] = number[1] if number else "present"
    return seen


def _distribution(name: str, places: tuple[str, ...] | None) -> importlib.metadata.Distribution | None:
    if places is None:
        return next(iter(importlib.metadata.distributions(name=name)), None)
    return next(iter(importlib.metadata.distributions(name=name, path=list(places))), None)


def _rocm(root: Path, torch: str) -> dict[str, str]:
    """ROCm's own file, or else what the wheel of torch was built for: ``2.9.0+rocm6.4``."""
    file = root / "opt/rocm/.info/version"
    text = file.read_text().strip() if file.is_file() else ""
    built = re.search(r"\+rocm([\d.]+)", torch)
    found = text or (built[1] if built else "")
    return {"rocm": found} if found else {}


@functools.cache
def _needs() -> tuple[dict[str, Any], ...]:
    return tuple(orjson.loads(_NEEDS.read_bytes()))


@functools.cache
def _images() -> dict[str, dict[str, str]]:
    return {row["image"]: row["versions"] for row in orjson.loads(_IMAGES.read_bytes())}
