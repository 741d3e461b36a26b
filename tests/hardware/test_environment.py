"""The variables of the ranks: which apply, why, and whose value wins."""

from __future__ import annotations

import importlib.resources
import json

import pytest

from megawrap.config.compose import compose
from megawrap.hardware.conditions import holds, version
from megawrap.hardware.environment import masked
from megawrap.plan import build

ROWS = json.loads(importlib.resources.files("megawrap.hardware").joinpath("environment.json").read_text())


def test_every_row_has_a_reason_and_a_source():
    assert all(row["reason"] and row["source"] and isinstance(row["when"], dict) for row in ROWS)


@pytest.mark.parametrize(
    ("when", "facts", "expected"),
    [
        ({}, {}, True),
        ({"a": True}, {"a": True}, True),
        ({"a": True}, {}, False),
        ({"a": False}, {}, False),
        ({"a": ["x", "y"]}, {"a": "y"}, True),
        ({"a": ["x", None]}, {}, True),
        ({"a": "?"}, {"a": 0}, True),
        ({"a": "?"}, {}, False),
        ({"rocm": "<6.4"}, {"rocm": "6.3.4"}, True),
        ({"rocm": "<6.4"}, {"rocm": "6.4.0"}, False),
        ({"rocm": "<6.4"}, {"rocm": "6.10"}, False),
        ({"rocm": "<6.4"}, {}, False),
        ({"tp": ">1"}, {"tp": 2}, True),
        ({"torch": ">=2.7"}, {"torch": "2.7.0a0+git637433"}, True),
        ({"torch": ">=2.7"}, {"torch": "absent"}, False),
    ],
)
def test_conditions(when, facts, expected):
    assert holds(when, facts) is expected


def test_versions():
    assert [version(word) for word in ("2.10.0", "2.2.0.dev0", "7", None, "git63")] == [
        (2, 10),
        (2, 2),
        (7,),
        (),
        (63,),
    ]


FSDP2, MEGATRON_FSDP = "parallel=fsdp2", "megatron.args.use_megatron_fsdp=true"


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ((), "absent"),
        (("parallel=tp2",), "1"),
        (("parallel=cp2",), "1"),
        (("parallel=pp2",), "absent"),
        (("parallel=tp2", "cluster=mi300x"), "1"),
        (("parallel=tp2", "cluster=mi355x"), "1"),
        (("parallel=tp2", "cluster=b200"), "absent"),
        ((FSDP2,), None),
        ((FSDP2, "cluster=b200"), None),
        ((MEGATRON_FSDP, "parallel.tp=2"), None),
        (("parallel=tp2", "megatron=rocm-2026-02"), "1"),
        ((FSDP2, "megatron=rocm-2026-02"), None),
        (("megatron=rocm-2026-02",), "absent"),
        (("megatron=rocm-2025-08",), "1"),
        (("parallel=tp2", "megatron=rocm-2025-08"), "1"),
        (("parallel=tp2", "megatron=core-0.11.0", "cluster=b200"), "1"),
    ],
)
def test_device_connections_follow_the_layout(planned, words, value):
    plan = planned("model=llama2_7b", *words)
    assert plan.environment.get("CUDA_DEVICE_MAX_CONNECTIONS", "absent") == value
    # What we choose is what the rules taken from Megatron ask for.
    assert not [one for one in plan.findings if one.id in ("MW112", "MW113", "MW114")]


def test_your_own_value_wins_over_the_shell_and_the_shell_over_the_profile():
    def variable(own: str | None = "unset", **shell: str):
        words = ["model=llama2_7b", "cluster=mi300x"]
        words += [f"env.GPU_MAX_HW_QUEUES={own or 'null'}"] if own != "unset" else []
        return build(compose(words), ambient=shell).variables["GPU_MAX_HW_QUEUES"]

    assert variable().value == "2"
    from_shell = variable(GPU_MAX_HW_QUEUES="4")
    assert (from_shell.value, from_shell.source) == ("4", "shell")
    assert from_shell.reason.startswith("from your shell, which wins over 2 of the profile (two hardware queues")
    own = variable("8", GPU_MAX_HW_QUEUES="4")
    assert (own.value, own.source) == ("8", "env.GPU_MAX_HW_QUEUES")
    assert own.reason.startswith("yours, which wins over 4 of your shell")
    assert variable(None, GPU_MAX_HW_QUEUES="4").value is None
    assert variable("2").reason == "yours"


def test_a_value_of_yours_that_megatron_refuses_is_yours_and_refused(planned):
    plan = planned("model=llama2_7b", "parallel=tp2", "env.CUDA_DEVICE_MAX_CONNECTIONS=8")
    assert plan.environment["CUDA_DEVICE_MAX_CONNECTIONS"] == "8"
    assert "MW112" in [one.id for one in plan.findings]


def test_what_the_shell_hands_down_is_shown_and_kept():
    plan = build(
        compose(["model=llama2_7b", "cluster=mi300x"]),
        ambient={"NCCL_DEBUG": "WARN", "HOME": "/", "HIP_VISIBLE_DEVICES": "0,1"},
    )
    assert (plan.variables["NCCL_DEBUG"].value, plan.variables["NCCL_DEBUG"].reason) == ("WARN", "from your shell")
    assert not {"HOME", "HIP_VISIBLE_DEVICES"} & set(plan.variables)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (("cluster=mi300x",), "HSA_NO_SCRATCH_RECLAIM", "1"),
        (("cluster=mi355x",), "HSA_NO_SCRATCH_RECLAIM", None),
        (("cluster=mi355x", "cluster.container.rocm=6.3.4"), "HSA_NO_SCRATCH_RECLAIM", "1"),
        (("cluster=mi355x", "cluster.container.rocm=7.0.0"), "HSA_NO_SCRATCH_RECLAIM", None),
        (("cluster=mi210",), "HSA_FORCE_FINE_GRAIN_PCIE", "1"),
        (("cluster=mi300x",), "HSA_FORCE_FINE_GRAIN_PCIE", None),
        (("cluster=h100",), "GPU_MAX_HW_QUEUES", None),
        (("cluster=mi355x", "precision=fp8_mxfp8"), "NVTE_ROCM_ENABLE_MXFP8", "1"),
        (("cluster=mi355x", "precision=fp8_delayed"), "NVTE_ROCM_ENABLE_MXFP8", None),
        (("cluster=b200", "precision=fp8_mxfp8"), "NVTE_ROCM_ENABLE_MXFP8", None),
        (("cluster=mi300x", "precision=fp8_delayed"), "NVTE_USE_CAST_TRANSPOSE_TRITON", "1"),
        (("cluster=mi300x", "cluster.nodes=2"), "NCCL_CROSS_NIC", "0"),
        (("cluster=mi300x",), "NCCL_CROSS_NIC", None),
        (("cluster=mi250x", "cluster.nodes=2", "cluster.nic=cxi"), "FI_MR_CACHE_MONITOR", "userfaultfd"),
        (("cluster=mi300x", "megatron.args.apply_query_key_layer_scaling=true"), "NVTE_APPLY_QK_LAYER_SCALING", "1"),
        (("cluster=h100", "megatron.args.deterministic_mode=true"), "NCCL_ALGO", "Ring"),
        (("cluster=h100", "attention=flash", "megatron=core-0.9.0"), "NVTE_FUSED_ATTN", "0"),
        (("cluster=h100", "attention=fused", "megatron=core-0.9.0"), "NVTE_FLASH_ATTN", "0"),
        (("cluster=h100", "attention=flash", "megatron=core-0.16.1"), "NVTE_FUSED_ATTN", None),
        (("cluster=cpu",), "OMP_NUM_THREADS", "1"),
        (("cluster=cpu",), "GLOO_SOCKET_IFNAME", "lo"),
    ],
)
def test_profiles(planned, words, name, value):
    assert planned("model=llama2_7b", *words).environment.get(name) == value


def test_the_variables_that_a_mode_needs_are_set_so_its_rules_pass(planned):
    for word in ("megatron.args.deterministic_mode=true", "megatron.args.apply_query_key_layer_scaling=true"):
        plan = planned("model=llama2_7b", "cluster=h100", word)
        assert not [one for one in plan.findings if one.id in ("MW386", "MW388")], word


def test_secrets_are_masked():
    assert masked({"WANDB_API_KEY": "x", "HF_TOKEN": "y", "PATH": "z"}) == {
        "HF_TOKEN": "***", "PATH": "z", "WANDB_API_KEY": "***"
    }  # fmt: skip
