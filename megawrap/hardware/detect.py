"""Which accelerators this machine has, read from sysfs and procfs: no torch, no driver call. Where those say nothing,
the vendors' own tools are asked."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from megawrap.hardware import smi
from megawrap.hardware.table import Gpu, by_arch, by_marketing_name, by_pci_id


@dataclasses.dataclass(frozen=True)
class Detected:
    """The accelerators of a machine. ``gpu`` is their row in the table, when one fits; ``said_by`` tells who said so."""

    vendor: str
    count: int
    gpu: Gpu | None
    said_by: str = "sysfs"


def detect(root: Path = Path("/"), *, ask_tools: bool = False) -> Detected | None:
    """The accelerators under ``root`` (another root is for tests); ``None`` when there are none.

    ``ask_tools``: where the files say nothing, start amd-smi, rocm-smi or nvidia-smi, if there is one."""
    found = _amd(root) or _nvidia(root)
    return found or (_told() if ask_tools else None)


def _told() -> Detected | None:
    cards = smi.cards()
    if not cards:
        return None
    first = cards[0]
    kind = by_pci_id(first.pci_id or "") or by_marketing_name(first.name)
    kind = kind or (by_arch(first.arch, first.memory_gb or 0) if first.arch else None)
    return Detected(first.vendor, len(cards), kind, first.said_by)


def _amd(root: Path) -> Detected | None:
    nodes = [(path.parent, _properties(path)) for path in sorted(root.glob(f"{_KFD}/*/properties"))]
    # The KFD topology also lists CPUs, as nodes without SIMD units.
    of_gpus = [(folder, node) for folder, node in nodes if node.get("simd_count", 0) > 0]
    if not of_gpus:
        return None
    folder, node = of_gpus[0]
    # By the device id: MI300X and MI308X have the same architecture and the same memory.
    kind = by_pci_id(f"{node.get('device_id', 0):#x}")
    return Detected("amd", len(of_gpus), kind or by_arch(_gfx(node.get("gfx_target_version", 0)), _memory_gb(folder)))


def _memory_gb(node: Path) -> float:
    """The largest bank of GPU memory, in GB."""
    banks = [_properties(path) for path in sorted(node.glob("mem_banks/*/properties"))]
    return max((bank.get("size_in_bytes", 0) for bank in banks if bank.get("heap_type") in (1, 2)), default=0) / 1e9


def _nvidia(root: Path) -> Detected | None:
    files = sorted(root.glob("proc/driver/nvidia/gpus/*/information"))
    if not files:
        return None
    model = next((line for line in files[0].read_text().splitlines() if line.startswith("Model:")), "")
    return Detected("nvidia", len(files), by_marketing_name(model.partition(":")[2]), "procfs")


def _properties(path: Path) -> dict[str, int]:
    try:
        text = path.read_text()
    except PermissionError:  # a GPU that the container's cgroup hides
        return {}
    pairs = [line.split() for line in text.splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _gfx(version: int) -> str:
    """KFD's decimal version → the compiler's name: 90402 → gfx942, 90010 → gfx90a (the last digit is hexadecimal)."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


_KFD = "sys/class/kfd/kfd/topology/nodes"
