"""What all tests share."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from megawrap.config.compose import Composed, compose
from megawrap.plan import LaunchPlan, build

HAS_MEGATRON = importlib.util.find_spec("megatron") is not None and importlib.util.find_spec("torch") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that train need torch and megatron-core; on CI their absence is a failure, not a skip."""
    if HAS_MEGATRON or os.environ.get("MEGAWRAP_REQUIRE_SYSTEM"):
        return
    skip = pytest.mark.skip(reason="needs torch and megatron-core: pip install 'megawrap[cpu]'")
    for item in items:
        if item.get_closest_marker("train"):
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide terminal without colours, and none of the variables that a plan would take from the shell."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("CUDA_DEVICE_MAX_CONNECTIONS", "OMP_NUM_THREADS", "PYTHONUNBUFFERED", "GLOO_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def composed() -> Callable[..., Composed]:
    """Compose overrides."""
    return lambda *words: compose(words)


@pytest.fixture
def planned() -> Callable[..., LaunchPlan]:
    """Plan overrides, with an empty shell environment."""
    return lambda *words: build(compose(words), ambient={})


@pytest.fixture
def weird_path(tmp_path: Path) -> Path:
    """A folder whose name has what breaks careless quoting."""
    path = tmp_path / 'it\'s a "folder" $HOME; echo [x] \\ ü'
    path.mkdir()
    return path
