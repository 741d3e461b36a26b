"""GPUs: the table, detection from sysfs and procfs, and the environment of the ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from megawrap.config.sections.place import Cluster
from megawrap.errors import ConfigError
from megawrap.hardware.detect import detect
from megawrap.hardware.environment import environment, masked
from megawrap.hardware.machine import machine
from megawrap.hardware.table import gpu, gpus

CONF = Path(__file__).parents[2] / "conf/cluster"


def test_every_cluster_names_a_known_gpu():
    for file in CONF.glob("*.yaml"):
        chosen = yaml.safe_load(file.read_text())
        if "gpu" in chosen:
            assert gpu(chosen["gpu"]).id == chosen["gpu"] == file.stem


def test_a_gpu_that_does_not_exist_is_answered_with_one_that_does():
    with pytest.raises(ConfigError) as caught:
        gpu("Instinct MI395")
    assert "mi355x" in caught.value.findings[0].nearest


@pytest.mark.parametrize("name", ["MI300X", "Instinct MI300X", "mi300x"])
def test_spellings(name):
    assert gpu(name) is gpus()["mi300x"]


def _kfd(root: Path, *, version: int, count: int, memory: int) -> Path:
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    for index in range(count + 1):
        node = nodes / str(index)
        (node / "mem_banks/0").mkdir(parents=True)
        is_gpu = index > 0
        (node / "properties").write_text(f"simd_count {304 * is_gpu}\ngfx_target_version {version * is_gpu}\n")
        size = memory if is_gpu else 2_000_000_000_000
        (node / "mem_banks/0/properties").write_text(f"heap_type {1 if is_gpu else 0}\nsize_in_bytes {size}\n")
    return root


@pytest.mark.parametrize(
    ("version", "memory", "expected"),
    [(90402, 206_000_000_000, "mi300x"), (90402, 274_000_000_000, "mi325x"), (90500, 309_000_000_000, "mi350x")],
)
def test_amd(tmp_path, version, memory, expected):
    found = detect(_kfd(tmp_path, version=version, count=8, memory=memory))
    assert found is not None
    assert (found.vendor, found.count, found.gpu.id) == ("amd", 8, expected)


def test_nvidia(tmp_path):
    for slot in range(2):
        card = tmp_path / f"proc/driver/nvidia/gpus/0000:0{slot}:00.0"
        card.mkdir(parents=True)
        (card / "information").write_text("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 42\n")
    found = detect(tmp_path)
    assert found is not None
    assert (found.vendor, found.count, found.gpu.id) == ("nvidia", 2, "h100")


def test_nothing(tmp_path):
    assert detect(tmp_path) is None


def test_cpu_takes_as_few_processes_as_the_layout_needs():
    assert machine(Cluster(device="cpu"), smallest_world=6).world_size == 6


def test_an_assumed_number_of_gpus_says_so(monkeypatch):
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: None)
    assert machine(Cluster(), smallest_world=2).name == "8 GPUs (assumed)"
    assert machine(Cluster(gpu="mi300x", gpus_per_node=8, nodes=2), 2).name == "2 x 8 AMD Instinct MI300X"


def test_your_own_value_wins_over_the_shell_and_the_shell_over_the_profile():
    facts = {"vendor": "amd"}
    profile = environment(facts, {}, {})["GPU_MAX_HW_QUEUES"]
    assert (profile.value, environment(facts, {}, {"GPU_MAX_HW_QUEUES": "4"})["GPU_MAX_HW_QUEUES"].value) == ("2", "4")
    assert (
        environment(facts, {"GPU_MAX_HW_QUEUES": None}, {"GPU_MAX_HW_QUEUES": "4"})["GPU_MAX_HW_QUEUES"].value is None
    )


@pytest.mark.parametrize(
    ("words", "value"),
    [(("parallel=tp2",), "1"), (("parallel=cp2",), "1"), (("parallel=fsdp2",), None), ((), "absent")],
)
def test_device_connections_follow_the_layout(planned, words, value):
    environment = planned("model=llama2_7b", *words).environment
    assert environment.get("CUDA_DEVICE_MAX_CONNECTIONS", "absent") == value


def test_gemm_tuning_is_an_environment_of_amd(planned):
    words = ("model=llama2_7b", "gemm=tune", "gemm.run_count=7")
    assert planned(*words, "cluster=mi300x").environment["TE_HIPBLASLT_TUNING_RUN_COUNT"] == "7"
    assert "TE_HIPBLASLT_TUNING_RUN_COUNT" not in planned(*words, "cluster=h100").environment


def test_secrets_are_masked():
    assert masked({"WANDB_API_KEY": "x", "HF_TOKEN": "y", "PATH": "z"}) == {
        "HF_TOKEN": "***", "PATH": "z", "WANDB_API_KEY": "***"
    }  # fmt: skip
