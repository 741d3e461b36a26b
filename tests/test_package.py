"""What is shipped: wheel and sdist hold everything, and a plan works out of the wheel from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINKED = ("conf", "launchers", "preprocess", "rccl_tests")
pytest.importorskip("hatchling", reason="needs the dev extra")


def tracked() -> set[str]:
    """Files of the package in git, as they are named inside it."""
    words = ["git", "ls-files", "megawrap", *LINKED]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    inside = {name if name.startswith("megawrap/") else f"megawrap/{name}" for name in listed if name}
    return inside - {f"megawrap/{name}" for name in LINKED}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_links_are_relative():
    for name in LINKED:
        assert (ROOT / "megawrap" / name).readlink() == Path("..") / name


def test_the_sdist_holds_everything(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert tracked() <= names
    assert {"README.md", "LICENSE", "pyproject.toml", "CHANGELOG.md"} <= names


def test_the_wheel_holds_everything_and_nothing_else(built):
    """The wheel is built from the sdist, so this also shows that the sdist is enough."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == tracked()


def test_a_plan_out_of_the_wheel_from_another_folder(built, tmp_path):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        archive.extractall(tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    words = ["plan", "model=llama_tiny", "parallel=tp2", "cluster=cpu", "data=sample", "--format", "argv"]
    done = subprocess.run(
        [sys.executable, "-m", "megawrap", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path / "site" / "megawrap" / "preprocess" / "sample" / "tokenizer.model") in done.stdout.splitlines()


def test_the_installed_command_is_the_module():
    command = Path(sys.executable).with_name("megawrap")
    if not command.exists():
        pytest.skip("megawrap is not installed beside this Python")
    words = ["plan", "model=llama2_7b", "--format", "argv", "run.dir=x"]
    outputs = [
        subprocess.run([*start, *words], capture_output=True, text=True, check=True, cwd=ROOT).stdout
        for start in ([str(command)], [sys.executable, "-m", "megawrap"])
    ]
    assert outputs[0] == outputs[1]
