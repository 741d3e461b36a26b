"""The GPUs megawrap knows: memory, peaks and links, one row of ``gpus.json`` each, with its source."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import orjson

from megawrap.errors import ConfigError, Finding, nearest

_DATA = Path(__file__).with_name("gpus.json")


@dataclasses.dataclass(frozen=True)
class Gpu:
    """One GPU as the software sees it (one GCD of an MI250X). Memory in GB (decimal), peaks dense in TFLOP/s,
    HBM bandwidth in GB/s; ``None`` where nothing was published."""

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
    source: str
    note: str


@functools.cache
def gpus() -> dict[str, Gpu]:
    """Id → GPU."""
    return {row["id"]: Gpu(**row) for row in orjson.loads(_DATA.read_bytes())}


def gpu(name: str) -> Gpu:
    """The GPU called ``name``.

    Raises:
        ConfigError: when there is none; the message lists all.
    """
    plain = name.lower().replace("instinct", "").replace("-", "_").strip(" _")
    if plain in gpus():
        return gpus()[plain]
    close = nearest(plain, gpus())
    message = f"cluster.gpu = {name!r} is not a GPU that megawrap knows: {', '.join(gpus())}"
    raise ConfigError(Finding(id="MW020", keys=("cluster.gpu",), message=message, nearest=close))
