"""Which accelerators this machine has, read from sysfs and procfs: no torch, no tool, no driver call."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from megawrap.hardware.table import Gpu, gpus


@dataclasses.dataclass(frozen=True)
class Detected:
    """The accelerators of a machine. ``gpu`` is their row in the table, when one fits."""

    vendor: str
    count: int
    gpu: Gpu | None


def detect(root: Path = Path("/")) -> Detected | None:
    """The accelerators under ``root`` (another root is for tests); ``None`` when there are none."""
    return _amd(root) or _nvidia(root)


def _amd(root: Path) -> Detected | None:
    nodes = [_properties(path) for path in sorted(root.glob("sys/class/kfd/kfd/topology/nodes/*/properties"))]
    # The KFD topology also lists CPUs, as nodes without SIMD units.
    gpu_nodes = [node for node in nodes if node.get("simd_count", 0) > 0]
    if not gpu_nodes:
        return None
    memory = [
        _properties(path) for path in sorted(root.glob("sys/class/kfd/kfd/topology/nodes/*/mem_banks/0/properties"))
    ]
    largest = max((bank.get("size_in_bytes", 0) for bank in memory if bank.get("heap_type") in (1, 2)), default=0)
    return Detected("amd", len(gpu_nodes), _by_arch(_gfx(gpu_nodes[0].get("gfx_target_version", 0)), largest / 1e9))


def _nvidia(root: Path) -> Detected | None:
    files = sorted(root.glob("proc/driver/nvidia/gpus/*/information"))
    if not files:
        return None
    model = next((line for line in files[0].read_text().splitlines() if line.startswith("Model:")), "").lower()
    by_length = sorted(gpus().values(), key=lambda one: -len(one.id))
    words = model.replace("-", " ").split()
    fitting = [one for one in by_length if one.vendor == "nvidia" and one.id in words]
    return Detected("nvidia", len(files), fitting[0] if fitting else None)


def _properties(path: Path) -> dict[str, int]:
    pairs = [line.split() for line in path.read_text().splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _gfx(version: int) -> str:
    """KFD's decimal version → the compiler's name: 90402 → gfx942, 90010 → gfx90a (the last digit is hexadecimal)."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def _by_arch(arch: str, memory_gb: float) -> Gpu | None:
    of_arch = [one for one in gpus().values() if one.arch == arch]
    return min(of_arch, key=lambda one: abs(one.memory_gb - memory_gb), default=None)
