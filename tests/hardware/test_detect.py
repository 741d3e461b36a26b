"""Which GPUs are here: from sysfs and procfs, and from the vendors' tools, in every state that those come in."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hardware_helpers import CPX, GRAPHICS, MI210, MI250, MI250X, MI300X, MI308X, Tools, amd_smi_row, kfd, mi300x

from megawrap.config.sections.place import Cluster
from megawrap.hardware import smi
from megawrap.hardware.detect import Detected, ask_tools, detect
from megawrap.hardware.machine import machine

SAMPLES = Path(os.environ.get("MEGAWRAP_SHARED") or Path(__file__).parents[3] / "shared") / "samples/smi"


@pytest.fixture
def tools(tmp_path, monkeypatch) -> Tools:
    monkeypatch.setenv("PATH", str(tmp_path))
    return Tools(tmp_path)


@pytest.mark.parametrize(
    ("node", "count", "expected"),
    [(MI300X, 8, "mi300x"), (MI308X, 8, "mi308x"), (MI210, 4, "mi210"), (MI250X, 8, "mi250x"), (MI250, 8, "mi250")],
)
def test_amd_from_sysfs(tmp_path, node, count, expected):
    found = detect(kfd(tmp_path, *[node] * count))
    assert (found.vendor, found.count, found.gpu.id, found.said_by) == ("amd", count, expected, "sysfs")


@pytest.mark.parametrize(
    ("version", "memory", "expected"),
    [(90402, 206_000_000_000, "mi300x"), (90402, 274_000_000_000, "mi325x"), (90500, 309_000_000_000, "mi350x")],
)
def test_amd_with_an_unknown_device_id_is_known_by_architecture_and_memory(tmp_path, version, memory, expected):
    node = {"simd_count": 1000, "gfx_target_version": version, "device_id": 0x7FFF, "memory": memory}
    assert detect(kfd(tmp_path, node)).gpu.id == expected


def test_each_die_of_an_mi250x_is_a_gpu(tmp_path):
    """Four cards: eight GPUs of 64 GB, which is what the preset says too."""
    found = detect(kfd(tmp_path, *[MI250X] * 8))
    assert (found.count, found.gpu.memory_gb, found.partitions) == (8, 64, 1)


def test_partitions_have_their_share(tmp_path):
    found = detect(kfd(tmp_path, *[CPX] * 64))
    assert (found.count, found.partitions, found.gpu.memory_gb) == (64, 8, 24)
    assert found.gpu.bf16_tflops == pytest.approx(1307.4 / 8)
    assert "partition (1 of 8)" in found.gpu.name


def test_graphics_beside_an_instinct_does_not_count(tmp_path):
    found = detect(kfd(tmp_path, GRAPHICS, MI210, MI210))
    assert (found.count, found.gpu.id, found.others) == (2, "mi210", ("1 x gfx1036 0x164e",))


def test_mixed_gpus_are_told(tmp_path, monkeypatch):
    found = detect(kfd(tmp_path, MI300X, MI210, MI300X, MI300X))
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: found)
    where = machine(Cluster(), smallest_world=1)
    assert (where.name, where.processes_per_node) == ("3 AMD Instinct MI300X", 3)
    assert [(one.id, "1 x AMD Instinct MI210" in one.message) for one in where.findings] == [("MW540", True)]


def test_a_gpu_that_the_container_hides_is_not_counted(tmp_path, monkeypatch):
    root = kfd(tmp_path, MI300X, MI300X)
    hidden, read = root / "sys/class/kfd/kfd/topology/nodes/2/properties", Path.read_text

    def refuse(self: Path, *args: object, **kwargs: object) -> str:
        if self == hidden:
            raise PermissionError(1, "Operation not permitted")
        return read(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", refuse)
    assert detect(root).count == 1


def test_nvidia_from_procfs(tmp_path):
    for slot in range(2):
        card = tmp_path / f"proc/driver/nvidia/gpus/0000:0{slot}:00.0"
        card.mkdir(parents=True)
        (card / "information").write_text("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 42\n")
    assert detect(tmp_path).gpu.id == "h100"
    assert detect(tmp_path).count == 2


def test_nothing(tmp_path):
    assert detect(tmp_path) is None


def test_no_tool_is_no_problem(tools):
    assert ask_tools() == (None, ())


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"gpu_data": rows}])
def test_amd_smi_in_both_shapes(tools, wrap):
    tools.prints("amd-smi", wrap([mi300x(index) for index in range(8)]))
    found, problems = ask_tools()
    assert (found.count, found.gpu.id, found.said_by, problems) == (8, "mi300x", "amd-smi", ())


def test_amd_smi_after_a_warning(tools):
    tools.prints("amd-smi", "WARNING: user is not in the render group\n" + json.dumps([mi300x()]))
    assert ask_tools()[0].gpu.id == "mi300x"


def test_amd_smi_in_cpx_mode(tools):
    """The first partition of a GPU is described, the seven others are not."""

    def rows(gpu: int):
        cut = {"accelerator_partition": "CPX", "memory_partition": "NPS1"}
        yield mi300x(8 * gpu, partition={**cut, "partition_id": 0})
        for number in range(1, 8):
            bare = amd_smi_row(8 * gpu + number, "N/A", "N/A", "N/A", 0, 0, partition={**cut, "partition_id": number})
            yield {**bare, "vram": "N/A"}

    tools.prints("amd-smi", {"gpu_data": [row for gpu in range(2) for row in rows(gpu)]})
    found, _ = ask_tools()
    assert (found.count, found.partitions, found.gpu.memory_gb, found.others) == (16, 8, 24, ())


def test_amd_smi_of_an_mi250x(tools):
    rows = [amd_smi_row(die, "AMD Instinct MI250X", "0x740c", "gfx90a", 65520, 110) for die in range(8)]
    tools.prints("amd-smi", rows)
    assert (ask_tools()[0].count, ask_tools()[0].gpu.id) == (8, "mi250x")


def test_rocm_smi_serves_where_amd_smi_is_broken(tools):
    card = {"Card series": "AMD INSTINCT MI250 (MCM) OAM AC MBA", "Card model": "0x0b0c", "GPU ID": "0x740c"}
    tools.prints("amd-smi", '[{"gpu": 0, "asic": {"market_name": "AMD Inst')
    tools.prints("rocm-smi", {"card0": card, "card1": card, "system": {"Driver version": "6.2.4"}})
    found, problems = ask_tools()
    assert (found.count, found.gpu.id, found.said_by) == (2, "mi250", "rocm-smi")
    assert [problem.startswith("amd-smi static --json printed broken JSON") for problem in problems] == [True]


def test_nvidia_smi(tools):
    tools.prints("nvidia-smi", "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)\n")
    found, _ = ask_tools()
    assert (found.vendor, found.count, found.gpu.id) == ("nvidia", 2, "h200")


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("", 0, "printed nothing"),
        ("Unable to detect any GPU devices\n", 0, "printed no JSON"),
        ("[{", 0, "printed broken JSON"),
        ("ERROR: driver not initialized\n", 3, "failed with exit code 3: ERROR: driver not initialized"),
    ],
)
def test_a_tool_that_tells_nothing_is_named(tools, text, code, expected, monkeypatch):
    tools.prints("amd-smi", text, exit_code=code)
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: None)
    finding = machine(Cluster(), smallest_world=1).findings[0]
    assert finding.id == "MW542"
    assert expected in finding.message


@pytest.mark.parametrize("text", ["[]", '{"gpu_data": []}', "{}", "[1, {}]", '{"gpu_data": 7}', '{"gpu_data": null}'])
def test_a_tool_that_knows_of_no_gpu_is_believed(tools, text):
    tools.prints("amd-smi", text)
    assert ask_tools() == (None, ())


def test_a_tool_that_hangs_is_left(tools):
    tools.prints("amd-smi", [mi300x()], seconds=60)
    begin = time.monotonic()
    found, problems = ask_tools(timeout_seconds=0.3)
    assert (found, problems) == (None, ("amd-smi static --json gave no answer within 0.3 s",))
    assert time.monotonic() - begin < 30


def test_a_tool_that_cannot_start_is_named(tools):
    tools.prints("amd-smi", "")
    (tools.folder / "amd-smi").write_text("#!/nowhere/python\n")
    assert ask_tools()[1] == ("amd-smi static --json did not start: No such file or directory",)


def test_a_named_gpu_asks_no_tool(tools, monkeypatch):
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: None)
    tools.prints("amd-smi", [mi300x()])
    monkeypatch.setattr(smi, "ask", lambda *_: pytest.fail("asked"))
    assert machine(Cluster(gpu="mi210"), smallest_world=1).gpu.id == "mi210"


def test_auto_asks_the_tools(tools, monkeypatch):
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: None)
    tools.prints("amd-smi", [mi300x(index) for index in range(4)])
    assert machine(Cluster(), smallest_world=1).name == "4 AMD Instinct MI300X"


def test_a_gpu_that_the_table_has_not_is_said(monkeypatch):
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: Detected("nvidia", 2, None))
    where = machine(Cluster(), smallest_world=1)
    assert (where.name, [one.id for one in where.findings]) == ("2 GPUs", ["MW543"])


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the real samples are not here")
def test_real_samples(tools):
    tools.prints("amd-smi", (SAMPLES / "amdsmi_static_gpu_data_mi210.json").read_text())
    assert ask_tools()[0].gpu.id == "mi210"
    (tools.folder / "amd-smi").unlink()
    tools.prints("rocm-smi", (SAMPLES / "rocm_smi_a_json_mi250.json").read_text())
    assert ask_tools()[0].gpu.id == "mi250"
