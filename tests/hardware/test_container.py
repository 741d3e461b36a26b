"""What the container can do, declared or seen, against what is asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from megawrap.errors import ConfigError
from megawrap.hardware.container import container


def package(site: Path, name: str, version: str) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def ids(plan):
    return [one.id for one in plan.findings if one.id.startswith("MW52")]


GPU = ("model=llama2_7b", "cluster=mi300x")
DECLARED = (*GPU, "cluster.container.torch=2.7.0", "cluster.container.te=2.2.0")


def test_what_is_not_visible_is_not_judged(planned, tmp_path):
    for backend in ("flash", "fused", "unfused"):
        assert ids(planned(*GPU, f"attention={backend}")) == []
    assert container({}, (str(tmp_path),), on_gpu_machine=True, root=tmp_path).versions == {}


def test_packages_of_the_python_that_runs_the_ranks(tmp_path):
    package(tmp_path, "torch", "2.9.0+rocm6.4")
    package(tmp_path, "transformer_engine", "2.2.0")
    (tmp_path / "torch/lib").mkdir(parents=True)
    (tmp_path / "torch/lib/libaotriton_v2.so.0.11.1").touch()
    seen = container({}, (str(tmp_path),), on_gpu_machine=False, root=tmp_path).versions
    assert seen == {
        "torch": "2.9.0+rocm6.4",
        "te": "2.2.0",
        "flash_attn": "absent",
        "aotriton": "0.11.1",
        "rocm": "6.4",
    }


def test_rocms_own_file_wins_over_what_torch_was_built_for(tmp_path):
    package(tmp_path / "site", "torch", "2.9.0+rocm6.4")
    (tmp_path / "opt/rocm/.info").mkdir(parents=True)
    (tmp_path / "opt/rocm/.info/version").write_text("7.0.2-56\n")
    seen = container({}, (str(tmp_path / "site"),), on_gpu_machine=True, root=tmp_path).versions
    assert (seen["rocm"], seen["te"]) == ("7.0.2-56", "absent")


def test_torch_alone_on_a_laptop_is_no_training_container(tmp_path):
    package(tmp_path, "torch", "2.9.0")
    assert container({}, (str(tmp_path),), on_gpu_machine=False, root=tmp_path).versions == {}


def test_the_python_of_the_launcher_is_looked_at(planned, tmp_path):
    site = tmp_path / "lib/python3.12/site-packages"
    package(site, "torch", "2.7.0")
    package(site, "transformer_engine", "1.11.0")
    package(site, "flash_attn", "2.0.1")
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin/python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    plan = planned(*GPU, "attention=flash", f"launcher.python={python}")
    assert ids(plan) == ["MW520"]
    assert "flash-attn 2.0.6 or newer, and the container has 2.0.1" in next(
        one.message for one in plan.findings if one.id == "MW520"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("attention=flash", "cluster.container.flash_attn=absent"), ["MW520"]),
        (("attention=flash", "cluster.container.flash_attn=2.0.8"), ["MW520"]),
        (("attention=flash", "cluster.container.flash_attn=2.7.3"), []),
        (("attention=fused", "cluster.container.flash_attn=absent"), []),
        (("attention=fused", "cluster.container.ck=absent", "cluster.container.aotriton=absent"), ["MW520"]),
        (("attention=fused", "cluster.container.ck=absent", "cluster.container.aotriton=0.11.1"), []),
        (("cluster.container.te=absent",), ["MW521"]),
        (("precision=fp8_tensorwise",), []),
        (("precision=fp8_tensorwise", "cluster.container.te=2.1.0"), ["MW521"]),
        (("precision=fp8_blockwise",), ["MW521"]),
        (("precision=fp8_blockwise", "cluster.container.te=2.10.0"), []),
        (("precision=fp8_mxfp8", "cluster=mi355x", "cluster.container.te=2.0.0"), ["MW521"]),
    ],
)
def test_asked_against_declared(planned, words, expected):
    assert ids(planned(*DECLARED, *words)) == expected


def test_an_image_that_is_known_declares_itself(planned):
    plan = planned(*GPU, "attention=flash", "cluster.container.image=rocm/megatron-lm:v25.4")
    assert ids(plan) == ["MW520"]
    assert (
        "Transformer Engine 1.11 with flash-attn 3.0.0"
        in next(one for one in plan.findings if one.id == "MW520").message
    )
    assert ids(planned(*GPU, "attention=flash", "cluster.container.image=my/own:1")) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("cluster=mi250x", "attention=fused"), "built for gfx942 and gfx950, not for gfx90a"),
        (("parallel=cp2", "attention=unfused"), "CP = 2"),
        (("fusion.transformer_impl=local", "attention=flash"), "plain layers"),
    ],
)
def test_what_needs_no_version_to_be_wrong(planned, words, says):
    found = [one for one in planned(*GPU, *words).findings if one.id == "MW520"]
    assert [says in one.message for one in found] == [True]
    assert found[0].severity == "warning"
    assert found[0].nearest


def test_keys_that_mean_nothing_are_refused(planned):
    error = next(one for one in planned(*GPU, "cluster.container.flashattn=2.7.3").findings if one.severity == "error")
    assert (error.id, error.nearest[0]) == ("MW522", "cluster.container.flash_attn")


def test_a_version_that_yaml_takes_for_a_number_is_refused(planned):
    """2.10 would be read as 2.1."""
    error = next(one for one in planned(*GPU, "cluster.container.te=2.10").findings if one.severity == "error")
    assert error.nearest == ("cluster.container.te=2.1.0", "cluster.container.te=2.10.0")
    assert "MW522" in ids(planned(*GPU, "cluster.container.te=newest"))


def test_a_nic_that_is_none_is_refused(planned):
    with pytest.raises(ConfigError):
        planned(*GPU, "cluster.nic=ethernet")
