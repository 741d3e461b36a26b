"""What amd-smi, rocm-smi and nvidia-smi say about the GPUs of this machine. Their shapes drift from release to release,
so each value is looked for where any of them has put it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

TIMEOUT_SECONDS = 10


@dataclasses.dataclass(frozen=True)
class Card:
    """One GPU as a tool describes it. Memory in GB; ``None`` where the tool did not say. ``mode`` is how AMD's driver
    partitions it (SPX: not at all), ``partition`` which of its partitions this is."""

    vendor: str
    name: str
    said_by: str
    arch: str | None = None
    memory_gb: float | None = None
    pci_id: str | None = None
    compute_units: int | None = None
    mode: str | None = None
    partition: int = 0


@dataclasses.dataclass(frozen=True)
class Answer:
    """The GPUs that the first tool on PATH that knows of any tells of, and what went wrong with those asked before."""

    cards: tuple[Card, ...]
    problems: tuple[str, ...]


def ask(timeout_seconds: float = TIMEOUT_SECONDS) -> Answer:
    """Start the tools that are on PATH, in order, until one tells of a GPU."""
    problems: list[str] = []
    for words, read in _TOOLS:
        program = shutil.which(words[0])
        if program is None:
            continue
        try:
            found = read(_output([program, *words[1:]], timeout_seconds))
        except _NoAnswer as reason:
            problems.append(f"{' '.join(words)} {reason}")
            continue
        if found:
            return Answer(tuple(found), tuple(problems))
    return Answer((), tuple(problems))


class _NoAnswer(Exception):
    """A tool is there and tells nothing; says why, to follow its command."""


def _output(words: list[str], timeout_seconds: float) -> str:
    """What a tool prints. A driver that hangs holds the tool in a state that no signal ends, so it is left behind: its
    output goes to files, which nobody has to wait for."""
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        try:
            tool = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
            code = tool.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(tool.pid, signal.SIGKILL)
            raise _NoAnswer(f"gave no answer within {timeout_seconds:g} s") from None
        except OSError as problem:
            raise _NoAnswer(f"did not start: {problem.strerror}") from None
        out.seek(0)
        err.seek(0)
        if code != 0:
            last = "".join(f": {line[:200]}" for line in (err.read().strip() or out.read().strip()).splitlines()[-1:])
            raise _NoAnswer(f"failed with exit code {code}{last}")
        return out.read()


def _amd_smi(text: str) -> list[Card]:
    """``amd-smi static --json``: a list (before ROCm 7) or ``{"gpu_data": [...]}``."""
    data = _json(text)
    rows = data.get("gpu_data") if isinstance(data, dict) else data
    if not isinstance(rows, list):
        return []
    return [_amd_smi_card(row) for row in rows if isinstance(row, dict) and isinstance(row.get("asic"), dict)]


def _amd_smi_card(row: Mapping[str, Any]) -> Card:
    asic, cut = row["asic"], _part(row, "partition")
    return Card(
        vendor="amd",
        name=_word(asic.get("market_name")) or "",
        said_by="amd-smi",
        arch=_word(asic.get("target_graphics_version")),
        memory_gb=_memory_gb(_part(row, "vram").get("size")),
        pci_id=_word(asic.get("device_id")),
        compute_units=_whole(asic.get("num_compute_units")),
        mode=_word(cut.get("accelerator_partition")) or _word(cut.get("compute_partition")),
        partition=_whole(cut.get("partition_id")) or 0,
    )


def _memory_gb(size: Any) -> float | None:
    """``{"value": 196592, "unit": "MB"}``, or only the number; the tool's MB are 2**20 bytes."""
    number = size.get("value") if isinstance(size, dict) else size
    return number * 2**20 / 1e9 if isinstance(number, int) else None


def _rocm_smi(text: str) -> list[Card]:
    """``rocm-smi --showproductname --showid --json``: ``{"card0": {...}}``, where the spelling of the keys changed."""
    data = _json(text)
    rows = data.items() if isinstance(data, dict) else ()
    cards = [row for name, row in rows if name.startswith("card") and isinstance(row, dict)]
    return [_rocm_smi_card({key.lower(): value for key, value in row.items()}) for row in cards]


def _rocm_smi_card(row: Mapping[str, Any]) -> Card:
    ids = [str(row.get(key, "")) for key in ("device id", "gpu id", "card model")]
    pci_id = next((one for one in ids if re.fullmatch(r"0x[0-9a-f]{4}", one)), None)
    return Card("amd", _word(row.get("card series")) or "", "rocm-smi", _word(row.get("gfx version")), pci_id=pci_id)


def _nvidia_smi(text: str) -> list[Card]:
    """``nvidia-smi -L``: ``GPU 0: NVIDIA H100 80GB HBM3 (UUID: ...)``."""
    names = re.findall(r"^GPU \d+: (.*?)(?: \(UUID|$)", text, re.MULTILINE)
    return [Card("nvidia", name, "nvidia-smi") for name in names]


def _part(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value and value != "N/A" else None


def _whole(value: Any) -> int | None:
    """A whole number, which some releases print as text."""
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdigit()) else None


def _json(text: str) -> Any:
    """The first JSON document in ``text``; warnings may stand before it."""
    start = min((index for index in (text.find("{"), text.find("[")) if index >= 0), default=None)
    if start is None:
        raise _NoAnswer("printed no JSON" if text.strip() else "printed nothing")
    try:
        return json.JSONDecoder().raw_decode(text[start:])[0]
    except json.JSONDecodeError as problem:
        raise _NoAnswer(f"printed broken JSON: {problem}") from None


_TOOLS: tuple[tuple[list[str], Callable[[str], list[Card]]], ...] = (
    (["amd-smi", "static", "--json"], _amd_smi),
    (["rocm-smi", "--showproductname", "--showid", "--json"], _rocm_smi),
    (["nvidia-smi", "-L"], _nvidia_smi),
)
