"""Variables that do not do what is expected of them."""

from __future__ import annotations

import collections
import importlib.resources
import json
import re

import pytest

from megawrap.config.compose import compose
from megawrap.hardware.checks import checks
from megawrap.hardware.lint import known, lint
from megawrap.plan import build

ROWS = json.loads(importlib.resources.files("megawrap.hardware").joinpath("environment_lint.json").read_text())
FACTS = {"vendor": "amd", "device": "gpu", "attention": "auto", "te_grouped_gemm": False, "torch": "2.9.1",
         "rocm": "7.0", "gpu_name": "AMD Instinct MI300X", "arch": "gfx942", "nodes": 1, "tp": 1}  # fmt: skip


def found(own=None, shell=None, **facts):
    return lint(own or {}, shell or {}, collections.defaultdict(lambda: None, {**FACTS, **facts}))


def ids(own=None, shell=None, **facts):
    return [one.id for one in found(own, shell, **facts)]


def test_every_row_says_what_instead_and_where_that_is_from():
    for row in ROWS:
        assert row["says"] and row["use"] and row["source"], row
        assert row["id"] in checks(), row
        re.compile(row["name"])


@pytest.mark.parametrize("name", [row["name"] for row in ROWS if row["id"] == "MW501"])
def test_variables_nobody_reads(name):
    assert ids({name: "1"}) == ["MW501"]
    assert name not in known()


def test_advice_of_blogs_is_answered_with_what_to_use():
    finding = found({"PYTORCH_ROCM_ALLOCATOR": "expandable_segments:True"})[0]
    assert (finding.severity, finding.keys) == ("warning", ("env.PYTORCH_ROCM_ALLOCATOR",))
    assert "Instead: PYTORCH_ALLOC_CONF" in finding.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("NVTE_CK_V3_ATOMIC_FP32", "NVTE_CK_IS_V3_ATOMIC_FP32"),
        ("NVTE_CK_V3_BF16_CVT", "NVTE_CK_HOW_V3_BF16_CVT"),
        ("NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
    ],
)
def test_renamed(old, new):
    finding = found({old: "1"})[0]
    assert finding.id == "MW502"
    assert new in finding.message
    assert ids({new: "1"}) == []


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("NCLL_DEBUG", "NCCL_DEBUG"),
        ("RCCL_DEBUG", "NCCL_DEBUG"),
        ("NCCL_IB_HCAS", "NCCL_IB_HCA"),
        ("NCCL_SOCKET_IFACE", "NCCL_SOCKET_IFNAME"),
        ("NTVE_FLASH_ATTN", "NVTE_FLASH_ATTN"),
        ("HSA_NO_SCRATCH_RECLAIMS", "HSA_NO_SCRATCH_RECLAIM"),
        ("HIP_VISIBLE_DEVICE", "HIP_VISIBLE_DEVICES"),
        ("CUDA_DEVICE_MAX_CONNECTION", "CUDA_DEVICE_MAX_CONNECTIONS"),
        ("GPU_MAX_HW_QUEUE", "GPU_MAX_HW_QUEUES"),
        ("PYTORCH_TUNABLEOP_ENABLE", "PYTORCH_TUNABLEOP_ENABLED"),
    ],
)
def test_slips_of_the_finger(wrong, right):
    finding = found(shell={wrong: "1"})[0]
    assert finding.id == "MW503"
    assert finding.message.endswith(f"Did you mean {right}?")


@pytest.mark.parametrize(
    "name", ["PIP_PATH", "PATH", "NCCL_SOMETHING_ENTIRELY_NEW", "TOKENIZERS_PARALLELISM", "MY_HIP_PATH", "AMD"]
)
def test_what_is_not_ours_is_left_alone(name):
    assert ids(shell={name: "1"}) == []


def test_every_known_variable_is_left_alone_but_those_with_a_row():
    judged = [name for name in known() if not any(re.fullmatch(row["name"], name) for row in ROWS)]
    assert [one.message for one in found(dict.fromkeys(judged, "1"))] == []


def test_config_and_shell_are_told_apart():
    assert found({"HSA_QUEUE_PRIORITY": "1"})[0].message.startswith("env.HSA_QUEUE_PRIORITY: ")
    shell = found(shell={"HSA_QUEUE_PRIORITY": "1"})[0]
    assert shell.message.startswith("HSA_QUEUE_PRIORITY (from your shell): ")
    assert shell.origin == ("your shell",)


def test_what_the_configuration_unsets_is_not_inherited():
    assert ids({"HSA_QUEUE_PRIORITY": None}, {"HSA_QUEUE_PRIORITY": "1"}) == []


def test_contradictions():
    both_off = {"NVTE_FUSED_ATTN_CK": "0", "NVTE_FUSED_ATTN_AOTRITON": "0"}
    assert ids(both_off, attention="fused") == ["MW504"]
    assert ids(both_off, attention="flash") == []
    assert ids({"NVTE_FUSED_ATTN_CK": "0"}, attention="fused") == []
    assert ids({"NVTE_CK_USES_BWD_V3": "1"}, attention="flash") == ["MW504"]
    assert ids({"NVTE_CK_USES_BWD_V3": "1"}, attention="auto") == []
    assert ids({"NVTE_FLASH_ATTN": "1"}, attention="fused", attention_by_variables="fused") == ["MW504"]
    assert ids({"TE_HIPBLASLT_TUNING_RUN_COUNT": "10"}, te_grouped_gemm=True) == ["MW504"]
    assert ids({"TE_HIPBLASLT_TUNING_RUN_COUNT": "0"}, te_grouped_gemm=True) == []
    assert ids(shell={"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "0"}) == ["MW504"]


def test_two_words_for_one_allocator():
    same = {"PYTORCH_HIP_ALLOC_CONF": "max_split_size_mb:512", "PYTORCH_ALLOC_CONF": "max_split_size_mb:512"}
    assert ids(same) == []
    finding = found({**same, "PYTORCH_ALLOC_CONF": "garbage_collection_threshold:0.8"})[0]
    assert finding.id == "MW504"
    assert "PYTORCH_ALLOC_CONF has other words" in finding.message


@pytest.mark.parametrize("name", ["PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"torch": "2.10.0", "rocm": "7.0"}, ["MW505"]),
        ({"torch": "2.11.0", "rocm": "6.4.3"}, ["MW505"]),
        ({"torch": "2.11.0", "rocm": "7.0.2"}, []),
        ({"torch": None, "rocm": None}, ["MW505"]),
        ({"vendor": "nvidia", "torch": "2.6.0"}, []),
    ],
)
def test_expandable_segments(name, facts, expected):
    assert ids({name: "max_split_size_mb:64,expandable_segments:True"}, **facts) == expected
    assert ids({name: "expandable_segments:False"}, **facts) == []


def test_left_from_debugging():
    assert ids(shell={"HIP_LAUNCH_BLOCKING": "1"}) == ["MW506"]
    assert ids(shell={"HIP_LAUNCH_BLOCKING": "0"}) == []
    assert ids(shell={"HSA_OVERRIDE_GFX_VERSION": "9.4.2"}) == ["MW506"]


def test_the_plan_shows_warnings_with_their_places_and_goes_on():
    plan = build(
        compose(["model=llama2_7b", "cluster=mi300x", "env.HIP_ENABLE_FUSED_KERNELS='1'"]),
        ambient={"NVTE_CK_V3_ATOMIC_FP32": "0"},
    )
    shown = {one.id: (one.severity, one.origin) for one in plan.findings}
    assert shown["MW501"] == ("warning", ("override env.HIP_ENABLE_FUSED_KERNELS='1'",))
    assert shown["MW502"] == ("warning", ("your shell",))
