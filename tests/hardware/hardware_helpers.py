"""Machines made of files and of programs that say what amd-smi, rocm-smi and nvidia-smi say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def kfd(root: Path, *nodes: dict[str, int]) -> Path:
    """A KFD topology under ``root``: one CPU, then a GPU for each of ``nodes`` (``memory`` is its bank in bytes)."""
    for index, node in enumerate(({}, *nodes)):
        folder = root / f"sys/class/kfd/kfd/topology/nodes/{index}"
        (folder / "mem_banks/0").mkdir(parents=True)
        values = {"simd_count": 0, "simd_per_cu": 4, **{key: value for key, value in node.items() if key != "memory"}}
        (folder / "properties").write_text("".join(f"{key} {value}\n" for key, value in values.items()))
        heap, size = (1, node["memory"]) if node else (0, 2_000_000_000_000)
        (folder / "mem_banks/0/properties").write_text(f"heap_type {heap}\nsize_in_bytes {size}\nflags 0\n")
    return root


MI300X = {"simd_count": 1216, "gfx_target_version": 90402, "device_id": 0x74A1, "memory": 205_822_885_888}
MI308X = {"simd_count": 320, "gfx_target_version": 90402, "device_id": 0x74A2, "memory": 205_822_885_888}
MI250X = {"simd_count": 440, "gfx_target_version": 90010, "device_id": 0x740C, "memory": 68_702_699_520}
MI250 = {**MI250X, "simd_count": 416}
MI210 = {"simd_count": 416, "gfx_target_version": 90010, "device_id": 0x740F, "memory": 68_702_699_520}
CPX = {**MI300X, "simd_count": 152, "memory": 205_822_885_888 // 8}
GRAPHICS = {"simd_count": 4, "simd_per_cu": 2, "gfx_target_version": 100306, "device_id": 0x164E, "memory": 536_870_912}


def amd_smi_row(
    index: int, name: str, device_id: str, arch: str, megabytes: int, units: int, **more: Any
) -> dict[str, Any]:
    """A GPU in the shape of ``amd-smi static --json``."""
    asic = {"market_name": name, "vendor_id": "0x1002", "device_id": device_id, "rev_id": "0x00", "oam_id": index,
            "num_compute_units": units, "target_graphics_version": arch}  # fmt: skip
    vram = {"type": "HBM", "vendor": "N/A", "size": {"value": megabytes, "unit": "MB"}, "bit_width": 8192}
    return {"gpu": index, "asic": asic, "bus": {"bdf": f"0000:{index:02x}:00.0"}, "vram": vram, **more}


def mi300x(index: int = 0, **more: Any) -> dict[str, Any]:
    """One MI300X as amd-smi tells of it."""
    return amd_smi_row(index, "AMD Instinct MI300X", "0x74a1", "gfx942", 196592, 304, **more)


class Tools:
    """A folder, first on PATH, of programs that print what they are told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prints(self, name: str, text: Any, *, exit_code: int = 0, seconds: float = 0) -> None:
        """``name`` prints ``text`` (as JSON, unless it is text) after ``seconds``, and exits."""
        said = text if isinstance(text, str) else json.dumps(text)
        script = f"#!{sys.executable}\nimport sys, time\ntime.sleep({seconds})\n"
        script += f"sys.stdout.write({said!r})\nsys.exit({exit_code})\n"
        file = self.folder / name
        file.write_text(script)
        file.chmod(0o755)
