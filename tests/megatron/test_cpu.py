"""The stand-in for torch.cuda. Always in a process of its own: it replaces functions of torch for good."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.train


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``code``, with the stand-in already in place."""
    code = f"from megawrap.megatron import cpu\ncpu.install()\nimport torch\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code, *words], check=False, capture_output=True, text=True, timeout=120
    )


def standin(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m megawrap.megatron.cpu``."""
    command = [sys.executable, "-m", "megawrap.megatron.cpu", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env=os.environ | env)


def test_every_way_to_ask_for_a_gpu_gives_the_cpu():
    done = python(
        """
places = [
    torch.empty(2, device="cuda"), torch.zeros(2, device="cuda:1"), torch.ones(2, device=torch.device("cuda", 0)),
    torch.tensor([1], device=torch.cuda.current_device()), torch.ones(2).to("cuda"), torch.ones(2).to(0),
    torch.ones(2).to(device="cuda"), torch.ones(2).cuda(), torch.ones(2).new_empty(1, device="cuda"),
    torch.nn.Linear(2, 2, device="cuda").weight, torch.nn.Linear(2, 2).cuda().weight, torch.cuda.FloatTensor([1.0]),
    torch.nn.Linear(2, 2).to("cuda", torch.bfloat16).weight, torch.empty(2, pin_memory=True),
]
assert {place.device.type for place in places} == {"cpu"}
assert torch.ones(2).to(torch.bfloat16).dtype == torch.bfloat16
assert torch.ones(2).type() == "torch.cuda.FloatTensor"
assert torch.ones(2).type(torch.float16).dtype == torch.float16
"""
    )
    assert done.returncode == 0, done.stderr


def test_gradient_hooks_may_ask_for_a_gpu():
    done = python(
        """
weight = torch.ones(3, requires_grad=True)
weight.register_hook(lambda gradient: gradient + torch.ones(3, device="cuda"))
(2 * weight).sum().backward()
assert weight.grad.tolist() == [3, 3, 3]
"""
    )
    assert done.returncode == 0, done.stderr


def test_random_numbers_of_the_device_can_be_saved_and_repeated():
    done = python(
        """
torch.cuda.manual_seed(5)
state = torch.cuda.get_rng_state()
first = torch.rand(4, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(first, torch.rand(4, device="cuda"))
torch.manual_seed(5)
assert torch.equal(first, torch.rand(4))
assert torch.equal(torch.cuda.default_generators[torch.cuda.current_device()].get_state(), torch.get_rng_state())
"""
    )
    assert done.returncode == 0, done.stderr


def test_streams_and_events_do_nothing_and_memory_is_zero():
    done = python(
        """
with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record(); end.record(); torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0
    torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
torch.ones(1).record_stream(torch.cuda.current_stream())
assert torch.cuda.max_memory_allocated() == torch.cuda.memory_stats()["anything"] == 0
assert torch.cuda.mem_get_info()[0] > 0
"""
    )
    assert done.returncode == 0, done.stderr


def test_kernel_packages_of_a_container_are_hidden(tmp_path: Path):
    for name in ("transformer_engine", "apex"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("print('imported')")
    script = tmp_path / "script.py"
    script.write_text(
        "import importlib.util\n"
        "for name in 'transformer_engine', 'apex':\n"
        "    assert importlib.util.find_spec(name) is None\n"
        "    try: __import__(name)\n"
        "    except ImportError: print(name, 'is not there')\n"
        "try: import transformer_engine.pytorch\n"
        "except ImportError: print('nor is any part')\n"
    )
    done = standin(str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["transformer_engine is not there", "apex is not there", "nor is any part"]


@pytest.mark.parametrize("code", ["torch.cuda.CUDAGraph()", "torch.Generator(device='cuda')"])
def test_what_is_not_replaced_fails_rather_than_pretends(code: str):
    done = python(code)
    assert done.returncode == 1
    assert "Error" in done.stderr.splitlines()[-1] or "CUDA" in done.stderr


def test_as_many_devices_as_local_ranks_and_no_real_one():
    code = "import os; print(torch.cuda.device_count(), repr(os.environ['CUDA_VISIBLE_DEVICES']))"
    command = [sys.executable, "-c", f"from megawrap.megatron import cpu; cpu.install(); import torch; {code}"]
    env = os.environ | {"LOCAL_WORLD_SIZE": "4", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env=env).stdout == "4 ''\n"


def test_a_script_imports_the_megatron_beside_it(tmp_path: Path):
    for part in ("core", "training"):
        package = tmp_path / "megatron" / part
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
    (tmp_path / "pretrain_gpt.py").write_text(
        "import sys, torch, megatron.core, megatron.training as training\n"
        "print(sys.argv[1:], torch.cuda.is_available(), megatron.core.__file__, training.__file__)\n"
    )
    done = standin(str(tmp_path / "pretrain_gpt.py"), "--lr", "it's 1 $x")
    core, training = (tmp_path / "megatron" / part / "__init__.py" for part in ("core", "training"))
    assert (done.returncode, done.stdout) == (0, f"['--lr', \"it's 1 $x\"] True {core} {training}\n"), done.stderr


def test_an_installed_megatron_that_comes_before_the_source_tree_is_refused(tmp_path: Path):
    tree, site = tmp_path / "tree", tmp_path / "site"
    (tree / "megatron" / "core").mkdir(parents=True)
    (tree / "megatron" / "core" / "__init__.py").write_text("")
    (tree / "pretrain_gpt.py").write_text("raise SystemExit('ran')\n")
    (site / "megatron" / "core").mkdir(parents=True)
    for package in ("megatron", "megatron/core"):
        (site / package / "__init__.py").write_text("")
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    done = standin(str(tree / "pretrain_gpt.py"), PYTHONPATH=path)
    message = f"{tree} has its own megatron.core, but Python would import {site}/megatron/core: uninstall that one\n"
    assert (done.returncode, done.stderr) == (1, message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "usage: python -m megawrap.megatron.cpu (-m MODULE | SCRIPT) ARGUMENTS\n"),
        (("-m",), "usage: python -m megawrap.megatron.cpu (-m MODULE | SCRIPT) ARGUMENTS\n"),
        (("absent.py",), "python -m megawrap.megatron.cpu: there is no file absent.py\n"),
    ],
)
def test_wrong_words(words: tuple[str, ...], message: str):
    done = standin(*words)
    assert (done.returncode, done.stderr) == (1, message)
