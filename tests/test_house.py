"""The house: imports only point down its floors, files stay readable, and nothing of a machine stands in a file."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# From the ground up. A module may import its own package and any floor below; packages of one floor stand alone.
FLOORS = (
    {"errors"},
    {"config", "hardware"},
    {"megatron", "estimate"},
    {"plan", "steps", "guards", "surroundings", "catalog", "verify"},
    {"launchers", "rccl_tests", "preprocess"},
    {"tune", "run", "checkpoint", "importing"},
    {"cli"},
)
# Of one floor, yet one builds on the other: steps are part of a plan, the machine completes a cluster's section,
# rules ask the estimate for a width.
NEIGHBOURS = {
    ("plan", "steps"), ("plan", "surroundings"), ("plan", "catalog"), ("guards", "plan"), ("guards", "catalog"),
    ("verify", "plan"), ("verify", "catalog"), ("hardware", "config"), ("megatron", "estimate"),
}  # fmt: skip
STANDALONE = ("preprocess", "rccl_tests")


def modules() -> list[tuple[str, Path]]:
    """(name below megawrap, file) of every module."""
    found = []
    for folder in ("megawrap", "conf", "launchers", "preprocess", "rccl_tests"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(ROOT / "megawrap").parts if folder == "megawrap" else file.relative_to(ROOT).parts
            found.append((".".join(parts).removesuffix(".py").removesuffix(".__init__"), file))
    return found


def imports(file: Path) -> set[str]:
    """First names below megawrap that ``file`` imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("megawrap."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "megawrap":
            names |= {alias.name for alias in node.names if not alias.name.startswith("__")}
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("megawrap.")}
    return names


def floor(package: str) -> int:
    return next(level for level, packages in enumerate(FLOORS) if package in packages)


def test_imports_only_point_down():
    wrong = []
    for name, file in modules():
        package = name.split(".")[0]
        if package in ("__main__", "__init__", "conf"):
            continue
        for other in imports(file) - {package}:
            if floor(other) >= floor(package) and (package, other) not in NEIGHBOURS:
                wrong.append(f"{name} imports megawrap.{other}")
    assert wrong == []


def test_what_runs_alone_on_a_node_imports_nothing_of_ours_but_errors():
    wrong = [
        f"{name} imports megawrap.{other}"
        for name, file in modules()
        if name.split(".")[0] in STANDALONE
        for other in imports(file) - {name.split(".")[0], "errors"}
    ]
    assert wrong == []


def test_files_can_be_read_in_one_sitting():
    """The benchmark worker is one file because it has to run on a node without megawrap."""
    sizes = {name: len(file.read_text(encoding="utf-8").splitlines()) for name, file in modules()}
    assert {name for name, size in sizes.items() if size > 500} <= {"rccl_tests.worker"}
    assert sorted(sizes.values())[len(sizes) // 2] <= 150


def test_no_shell_strings():
    for name, file in modules():
        assert "shell=True" not in file.read_text(encoding="utf-8"), name


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_nothing_of_a_machine_stands_in_a_file():
    """No home folder, no address of a package index."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pattern = re.compile(rb"/(?:root|home)/\w|://[^/\s]+/simple\b")
    for name in listed.splitlines():
        file = ROOT / name
        if file.is_file() and not file.is_symlink():
            assert not pattern.search(file.read_bytes()), name
