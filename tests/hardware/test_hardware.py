"""GPUs: the table, the presets that name its rows, and the machine of a plan."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from megawrap.config.sections.place import Cluster
from megawrap.errors import ConfigError
from megawrap.hardware.machine import machine
from megawrap.hardware.table import gpu, gpus, identify

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


def test_cpu_takes_as_few_processes_as_the_layout_needs():
    assert machine(Cluster(device="cpu"), smallest_world=6).world_size == 6


def test_an_assumed_number_of_gpus_says_so(monkeypatch):
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: None)
    assert machine(Cluster(), smallest_world=2).name == "8 GPUs (assumed)"
    assert machine(Cluster(gpu="mi300x", gpus_per_node=8, nodes=2), 2).name == "2 x 8 AMD Instinct MI300X"


PRESETS = ("mi210", "mi250x", "mi300a", "mi300x", "mi308x", "mi325x", "mi350x", "mi355x",
           "a100", "h100", "h200", "b200", "cpu", "auto")  # fmt: skip


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_plans(planned, name):
    plan = planned("model=llama2_7b", "parallel=tp2", f"cluster={name}")
    assert plan.composed.config.cluster.name == name
    assert (plan.machine.gpu.id if plan.machine.gpu else name) == name


def test_the_presets_are_these_and_no_others():
    assert {file.stem for file in CONF.glob("*.yaml")} == set(PRESETS)


def test_every_row_has_its_numbers_and_their_source():
    for one in gpus().values():
        assert one.source
        assert one.memory_gb > 0
        assert one.hbm_gbs > 0
        assert one.intra_node_gbs
        assert (one.nics_per_node is None) == (one.nic_gbits is None) == (one.nic_source is None)
        # The peak of MI308X was never published.
        assert one.bf16_tflops or one.id == "mi308x"
        assert one.compute_units or one.vendor == "nvidia"


@pytest.mark.parametrize(("name", "major"), [("mi210", 9), ("mi300x", 9), ("mi355x", 9), ("h100", 9), ("b200", 10)])
def test_compute_capability(name, major):
    assert gpu(name).compute_major == major


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"name": "NVIDIA A100-SXM4-40GB"}, "a100_40gb"),
        ({"name": "NVIDIA A100-SXM4-80GB"}, "a100"),
        ({"name": "AMD Instinct MI325X"}, "mi325x"),
        ({"pci_id": "0x74A2", "arch": "gfx942", "memory_gb": 206}, "mi308x"),
        ({"arch": "gfx942", "memory_gb": 206, "compute_units": 80}, "mi308x"),
        ({"arch": "gfx950", "memory_gb": 309}, "mi350x"),
        ({"pci_id": "0x740c", "compute_units": 104}, "mi250"),
        ({"pci_id": "0x740c", "compute_units": 110}, "mi250x"),
        ({"name": "NVIDIA GeForce RTX 4090"}, None),
        ({}, None),
    ],
)
def test_what_drivers_tell(told, expected):
    found = identify(**told)
    assert (found.id if found else None) == expected


@pytest.mark.parametrize(
    ("name", "probably"),
    [("Instinct MI395", "mi355x"), ("mi300", "mi300x"), ("MI350", "mi350x"), ("mi30x", "mi300x"), ("h1000", "h100")],
)
def test_a_name_that_is_no_gpu_is_a_finding_of_the_plan(planned, name, probably):
    with pytest.raises(ConfigError) as caught:
        planned("model=llama2_7b", "cluster=auto", f"cluster.gpu='{name}'")
    finding = caught.value.findings[0]
    assert (finding.id, finding.keys) == ("MW020", ("cluster.gpu",))
    assert finding.origin[0].startswith("override cluster.gpu=")
    assert probably in finding.nearest
