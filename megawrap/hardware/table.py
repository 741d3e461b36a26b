"""The GPUs megawrap knows: memory, peaks, links and usual network, one row of ``gpus.json`` each, with its source."""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path
from typing import Any

import orjson

from megawrap.errors import ConfigError, Finding, nearest

_DATA = Path(__file__).with_name("gpus.json")
_MISTAKEN = Path(__file__).with_name("mistaken.json")


@dataclasses.dataclass(frozen=True)
class Gpu:
    """One GPU as the software sees it (one GCD of an MI250X). Memory in GB (decimal), peaks dense in TFLOP/s,
    HBM bandwidth in GB/s, ``intra_node_gbs`` what one GPU can send to its neighbours in GB/s per direction,
    ``nic_gbits`` line rate of one of the usual NICs in Gbit/s; ``None`` where nothing was published. ``pci_ids`` are
    the device ids that name this GPU and no other."""

    id: str
    name: str
    vendor: str
    arch: str
    memory_gb: float
    hbm_gbs: float
    bf16_tflops: float | None
    fp16_tflops: float | None
    fp8_tflops: float | None
    fp4_tflops: float | None
    intra_node: str
    intra_node_gbs: float | None
    nics_per_node: int | None
    nic_gbits: float | None
    nic_source: str | None
    pci_ids: tuple[str, ...]
    source: str
    note: str

    @property
    def compute_major(self) -> int:
        """The major number that torch.cuda.get_device_capability reports: gfx942 → 9, sm_100 → 10."""
        digits = self.arch.removeprefix("gfx").removeprefix("sm_")
        # The compiler's name ends in a minor number and, on AMD, a stepping: gfx90a is 9.0 stepping a.
        return int(digits[:-2] if self.vendor == "amd" else digits[:-1])


@functools.cache
def gpus() -> dict[str, Gpu]:
    """Id → GPU."""
    rows: list[dict[str, Any]] = orjson.loads(_DATA.read_bytes())
    return {row["id"]: Gpu(**{**row, "pci_ids": tuple(row["pci_ids"])}) for row in rows}


def gpu(name: str) -> Gpu:
    """The GPU called ``name``.

    Raises:
        ConfigError: when there is none; the message lists all, and says what is probably meant.
    """
    plain = re.sub(r"\b(amd|nvidia|instinct)\b", "", name.lower()).replace("-", "_").strip(" _")
    if plain in gpus():
        return gpus()[plain]
    mistaken = _mistaken().get(plain.replace(" ", "").replace("_", ""))
    close = tuple(mistaken["nearest"]) if mistaken else nearest(plain, gpus())
    why = f" ({mistaken['says']})" if mistaken else ""
    message = f"cluster.gpu = {name!r} is not a GPU that megawrap knows{why}: {', '.join(gpus())}"
    raise ConfigError(Finding(id="MW020", keys=("cluster.gpu",), message=message, nearest=close))


def by_marketing_name(name: str) -> Gpu | None:
    """The GPU that a driver calls ``name``, such as ``NVIDIA A100-SXM4-40GB``; of several that fit, the most exact."""
    words = set(re.split(r"[\s\-_()]+", name.lower()))
    fitting = [one for one in gpus().values() if set(one.id.split("_")) <= words]
    return max(fitting, key=lambda one: len(one.id), default=None)


def by_arch(arch: str, memory_gb: float) -> Gpu | None:
    """The GPU of an architecture whose memory is closest to ``memory_gb``."""
    of_arch = [one for one in gpus().values() if one.arch == arch]
    return min(of_arch, key=lambda one: abs(one.memory_gb - memory_gb), default=None)


def by_pci_id(device_id: str) -> Gpu | None:
    """The GPU with a PCI device id, such as ``0x74a1``."""
    return next((one for one in gpus().values() if device_id.lower() in one.pci_ids), None)


@functools.cache
def _mistaken() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in orjson.loads(_MISTAKEN.read_bytes())}
