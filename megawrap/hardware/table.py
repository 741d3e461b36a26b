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
    ``nic_gbits`` line rate of one of the usual NICs in Gbit/s; ``None`` where nothing was published. ``dies`` are the
    compute dies that it can be partitioned into, ``pci_ids`` its device ids."""

    id: str
    name: str
    vendor: str
    arch: str
    compute_units: int | None
    dies: int | None
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
    def summary(self) -> str:
        """For people: ``192 GB at 5.3 TB/s, bf16 1307 TFLOP/s, fp8 2615, 448 GB/s to its neighbours``."""
        peaks = [(kind, getattr(self, f"{kind}_tflops")) for kind in ("bf16", "fp8", "fp4")]
        said = [f"{self.memory_gb:g} GB at {self.hbm_gbs / 1000:g} TB/s"]
        said += [f"{kind} {value:.0f} TFLOP/s" for kind, value in peaks if value] or ["peak not published"]
        said += [f"{self.intra_node_gbs:g} GB/s to its neighbours"] if self.intra_node_gbs else []
        said += [f"{self.nics_per_node} NICs of {self.nic_gbits:g} Gbit/s a node"] if self.nics_per_node else []
        return ", ".join(said)

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


def identify(
    name: str = "",
    *,
    pci_id: str | None = None,
    arch: str | None = None,
    memory_gb: float | None = None,
    compute_units: int | None = None,
) -> Gpu | None:
    """The GPU that a driver or tool describes by any of these; the surest first. MI300X and MI308X share architecture
    and memory, MI250 and MI250X one of their device ids."""
    by_id = [one for one in gpus().values() if pci_id is not None and pci_id.lower() in one.pci_ids]
    named = _by_marketing_name(name)
    if len(by_id) == 1:
        return by_id[0]
    if named is not None:
        return named
    fitting = by_id or [one for one in gpus().values() if arch is not None and one.arch == arch]
    exact = [one for one in fitting if compute_units is not None and one.compute_units == compute_units]
    return min(exact or fitting, key=lambda one: abs(one.memory_gb - (memory_gb or 0)), default=None)


def _by_marketing_name(name: str) -> Gpu | None:
    """The GPU that a driver calls ``name``, such as ``NVIDIA A100-SXM4-40GB``; of several that fit, the most exact."""
    words = set(re.split(r"[\s\-_()]+", name.lower()))
    fitting = [one for one in gpus().values() if set(one.id.split("_")) <= words]
    return max(fitting, key=lambda one: len(one.id), default=None)


def partition(whole: Gpu, parts: int) -> Gpu:
    """One of the ``parts`` equal partitions (ROCm's DPX, QPX, CPX) that each GPU is cut into: what each has of memory,
    bandwidth and peaks. A partition reaches other GPUs over its share of their links."""
    share = {
        field: value / parts
        for field in (
            "memory_gb",
            "hbm_gbs",
            "bf16_tflops",
            "fp16_tflops",
            "fp8_tflops",
            "fp4_tflops",
            "intra_node_gbs",
        )
        if (value := getattr(whole, field)) is not None
    }
    units = whole.compute_units // parts if whole.compute_units else None
    return dataclasses.replace(
        whole, name=f"{whole.name} partition (1 of {parts})", compute_units=units, dies=1, **share
    )


@functools.cache
def _mistaken() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in orjson.loads(_MISTAKEN.read_bytes())}
