"""Which accelerators this machine has, read from sysfs and procfs: no torch, no driver call. Where those say nothing,
the vendors' own tools can be asked."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from megawrap.hardware import smi
from megawrap.hardware.table import Gpu, identify, partition

_KFD = "sys/class/kfd/kfd/topology/nodes"
_NEAR = 0.2
_MODES = {"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4}


@dataclasses.dataclass(frozen=True)
class Detected:
    """The accelerators of a machine. ``gpu`` is their row in the table, when one fits, and ``count`` how many of them
    there are: dies, for an MI250X, and partitions, where the driver cuts each GPU into ``partitions``. ``others`` names
    accelerators of other kinds, which a run would not use. ``said_by`` tells who said so."""

    vendor: str
    count: int
    gpu: Gpu | None
    said_by: str = "sysfs"
    partitions: int = 1
    others: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class _One:
    """An accelerator as it was found; ``name`` is for people."""

    vendor: str
    gpu: Gpu | None
    name: str
    partitions: int = 1


def detect(root: Path = Path("/")) -> Detected | None:
    """The accelerators that the files under ``root`` tell of (another root is for tests); ``None``: of none."""
    return _together(_amd(root), "sysfs") or _together(_nvidia(root), "procfs")


def ask_tools(timeout_seconds: float = smi.TIMEOUT_SECONDS) -> tuple[Detected | None, tuple[str, ...]]:
    """The accelerators that amd-smi, rocm-smi or nvidia-smi tell of, and why those of them that are here do not."""
    answer = smi.ask(timeout_seconds)
    found: list[_One] = []
    for card in answer.cards:
        # Newer releases describe a GPU under its first partition and print N/A for the others.
        is_rest = card.partition > 0 and found and not card.name and card.pci_id is None
        found.append(found[-1] if is_rest else _of_card(card))
    return _together(found, answer.cards[0].said_by if answer.cards else ""), answer.problems


def _of_card(card: smi.Card) -> _One:
    kind = identify(card.name, pci_id=card.pci_id, arch=card.arch, memory_gb=card.memory_gb,
                    compute_units=card.compute_units)  # fmt: skip
    parts = _MODES.get(card.mode or "SPX") or (kind.dies if kind else None) or 1
    return _One(card.vendor, kind, card.name or card.pci_id or "an unknown GPU", parts)


def _together(found: Sequence[_One], said_by: str) -> Detected | None:
    """The kind that a run would use: one that the table has before one that it has not, then the most numerous, then
    the one with the most memory. A workstation's graphics unit stands beside its Instincts."""
    if not found:
        return None
    counts = collections.Counter(found)
    chosen = max(counts, key=lambda one: (one.gpu is not None, counts[one], one.gpu.memory_gb if one.gpu else 0))
    kind = partition(chosen.gpu, chosen.partitions) if chosen.gpu and chosen.partitions > 1 else chosen.gpu
    others = tuple(f"{counts[one]} x {one.name}" for one in counts if one != chosen)
    return Detected(chosen.vendor, counts[chosen], kind, said_by, chosen.partitions, others)


def _amd(root: Path) -> list[_One]:
    nodes = [(path.parent, _properties(path)) for path in sorted(root.glob(f"{_KFD}/*/properties"))]
    # The KFD topology also lists CPUs, as nodes without SIMD units.
    return [_of_node(folder, node) for folder, node in nodes if node.get("simd_count", 0) > 0]


def _of_node(folder: Path, node: dict[str, int]) -> _One:
    units = node["simd_count"] // node.get("simd_per_cu", 4)
    memory = _memory_gb(folder)
    arch = _gfx(node.get("gfx_target_version", 0))
    pci_id = f"{node['device_id']:#x}" if node.get("device_id") else None
    kind = identify(pci_id=pci_id, arch=arch, memory_gb=memory, compute_units=units)
    name = kind.name if kind else f"{arch} {pci_id or ''}".strip()
    return _One("amd", kind, name, _parts(kind, units, memory))


def _parts(kind: Gpu | None, units: int, memory_gb: float) -> int:
    """Into how many partitions the GPU is cut, of which one has ``units`` and ``memory_gb``: both must say so."""
    if kind is None or not kind.compute_units or not memory_gb:
        return 1
    parts = round(kind.compute_units / units)
    # The driver counts in GiB and keeps some for itself, so memory only has to be near to its share.
    return parts if parts > 1 and abs(memory_gb * parts / kind.memory_gb - 1) < _NEAR else 1


def _memory_gb(node: Path) -> float:
    """The largest bank of GPU memory, in GB."""
    banks = [_properties(path) for path in sorted(node.glob("mem_banks/*/properties"))]
    return max((bank.get("size_in_bytes", 0) for bank in banks if bank.get("heap_type") in (1, 2)), default=0) / 1e9


def _nvidia(root: Path) -> list[_One]:
    files = sorted(root.glob("proc/driver/nvidia/gpus/*/information"))
    models = [line.partition(":")[2].strip() for file in files for line in _model(file)]
    return [_One("nvidia", identify(model), model) for model in models]


def _model(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if line.startswith("Model:")] or ["Model: unknown"]


def _properties(path: Path) -> dict[str, int]:
    try:
        text = path.read_text()
    except OSError:  # a GPU that the container's cgroup hides: the file is there and refuses to be read
        return {}
    pairs = [line.split() for line in text.splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _gfx(version: int) -> str:
    """KFD's decimal version → the compiler's name: 90402 → gfx942, 90010 → gfx90a (the last digit is hexadecimal)."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
