"""What amd-smi, rocm-smi and nvidia-smi say about the GPUs of this machine. Their shapes drift from release to release,
so each value is looked for where any of them has put it."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

TIMEOUT_SECONDS = 10


@dataclasses.dataclass(frozen=True)
class Card:
    """One GPU as a tool describes it. Memory in GB; ``None`` where the tool did not say."""

    vendor: str
    name: str
    said_by: str
    arch: str | None = None
    memory_gb: float | None = None
    pci_id: str | None = None


def cards() -> list[Card]:
    """The GPUs that the first tool on PATH that knows of any tells of."""
    for words, read in _TOOLS:
        found = read(_output(words))
        if found:
            return found
    return []


def _output(words: list[str]) -> str:
    """What a tool prints; nothing when it is not there, fails, or takes too long (a wedged driver)."""
    program = shutil.which(words[0])
    if program is None:
        return ""
    try:
        done = subprocess.run([program, *words[1:]], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _amd_smi(text: str) -> list[Card]:
    """``amd-smi static --json``: a list (before ROCm 7) or ``{"gpu_data": [...]}``."""
    data = _json(text)
    rows = data.get("gpu_data", []) if isinstance(data, dict) else data
    return [_amd_smi_card(row) for row in rows if isinstance(row, dict) and isinstance(row.get("asic"), dict)]


def _amd_smi_card(row: Mapping[str, Any]) -> Card:
    asic, vram = row["asic"], row.get("vram")
    size = vram.get("size") if isinstance(vram, dict) else None
    megabytes = size.get("value") if isinstance(size, dict) else size
    return Card(
        "amd",
        str(asic.get("market_name", "")),
        "amd-smi",
        _known(asic.get("target_graphics_version")),
        megabytes * 2**20 / 1e9 if isinstance(megabytes, int) else None,
        _known(asic.get("device_id")),
    )


def _rocm_smi(text: str) -> list[Card]:
    """``rocm-smi --showproductname --json``: ``{"card0": {...}}``, where the spelling of the keys changed."""
    data = _json(text)
    rows = [row for name, row in data.items() if name.startswith("card")] if isinstance(data, dict) else []
    return [_rocm_smi_card({key.lower(): value for key, value in row.items()}) for row in rows]


def _rocm_smi_card(row: Mapping[str, str]) -> Card:
    ids = [row.get(key, "") for key in ("device id", "gpu id", "card model")]
    pci_id = next((one for one in ids if re.fullmatch(r"0x[0-9a-f]{4}", one)), None)
    return Card("amd", row.get("card series", ""), "rocm-smi", _known(row.get("gfx version")), None, pci_id)


def _nvidia_smi(text: str) -> list[Card]:
    """``nvidia-smi -L``: ``GPU 0: NVIDIA H100 80GB HBM3 (UUID: ...)``."""
    names = re.findall(r"^GPU \d+: (.*?)(?: \(UUID|$)", text, re.MULTILINE)
    return [Card("nvidia", name, "nvidia-smi") for name in names]


def _known(value: Any) -> str | None:
    return value if isinstance(value, str) and value and value != "N/A" else None


def _json(text: str) -> Any:
    """The JSON document in ``text``; warnings may stand before it. An empty list when there is none."""
    start = min((index for index in (text.find("{"), text.find("[")) if index >= 0), default=None)
    if start is None:
        return []
    try:
        return json.JSONDecoder().raw_decode(text[start:])[0]
    except json.JSONDecodeError:
        return []


_TOOLS: tuple[tuple[list[str], Callable[[str], list[Card]]], ...] = (
    (["amd-smi", "static", "--json"], _amd_smi),
    (["rocm-smi", "--showproductname", "--json"], _rocm_smi),
    (["nvidia-smi", "-L"], _nvidia_smi),
)
