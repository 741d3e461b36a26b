"""``megawrap surface``: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from megawrap.cli import main
from megawrap.megatron.surface import Argument, Surface, difference

DOCUMENTED = Path(__file__).parents[2] / "docs/json.md"
ARGUMENTS = """
import argparse
def parse_args(extra_args_provider=None, ignore_unknown_args=False):
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-layers", type=int, default=7)
    parser.add_argument("--mine", choices=["a", "b"], nargs="+", default=["a"])
    parser.add_argument("--open", action="store_true", default=open_question())
    return parser.parse_args()
"""


@pytest.fixture
def fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree whose imports do not work, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = {"core/package_info.py": "MAJOR = 0\nMINOR = 19\nPATCH = 1\n", "training/arguments.py": ARGUMENTS}
    for name, text in files.items():
        path = tmp_path / "tree" / "megatron" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    # Whatever torch is here, the tree's comes first.
    (tmp_path / "tree" / "torch.py").write_text("raise ImportError('no torch here')")
    return tmp_path / "tree"


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["surface", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_fork_against_its_nearest_release(capsys, fork):
    code, out, err = shown(capsys, str(fork))
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[:10] == [
        f"checkout {fork} 0.19.1 (arguments from its source)",
        "  way        source: its source was read, nothing of it was run",
        "  arguments  3; core-0.19.0 has 807",
        "  not taken",
        "    parser: ImportError: no torch here",
        "  left open by the source, 1",
        "    --open: default not told, and not in the release",
        "  added, 2",
        "    --mine  text, nargs +, one of a|b, default a",
        "    --open  store_true",
    ]
    assert lines[10] == "  removed, 806"
    assert lines[-2:] == ["  changed, 1", "    --num-layers  default: not set -> 7"]


def test_as_json_it_holds_what_is_documented(capsys, fork):
    code, out, _ = shown(capsys, str(fork), "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["megatron"]["way"] == "source"
    assert answer["arguments"] == 3
    assert [one["flags"] for one in answer["added"]] == [["--mine"], ["--open"]]
    assert len(answer["removed"]) == 806
    assert answer["changed"] == [{"flag": "--num-layers", "field": "default", "before": None, "after": 7}]
    assert answer["reasons"] == ["parser: ImportError: no torch here"]
    assert answer["notes"] == ["--open: default not told, and not in the release"]
    documented = DOCUMENTED.read_text(encoding="utf-8")
    for key in (*answer, *answer["megatron"]):
        assert f"`{key}`" in documented, f"{key} is not in docs/json.md"


def test_a_release_is_its_own(capsys):
    code, out, _ = shown(capsys, "core-0.16.1")
    assert (code, out.splitlines()) == (0, [
        "core-0.16.1",
        "  way        bundled: the data of core-0.16.1",
        "  arguments  651; core-0.16.1 has 651",
        "  no difference from core-0.16.1",
    ])  # fmt: skip


@pytest.mark.train
def test_without_a_word_it_is_the_installed_package(capsys):
    code, out, _ = shown(capsys)
    assert code == 0
    assert out == shown(capsys, "installed")[1]
    assert out.startswith("megatron-core ")


def test_a_tree_that_tells_nothing_is_a_warning(capsys, fork):
    (fork / "megatron/training/arguments.py").write_text("x = 1")
    code, out, err = shown(capsys, str(fork))
    assert code == 0
    assert out.splitlines()[-1] == "  no difference from core-0.19.0"
    assert err.splitlines()[0] == (
        f"warning MW017  checkout {fork} 0.19.1 (arguments of core-0.19.0): it could not tell its own "
        "(parser: ImportError: no torch here; source: megatron/training/arguments.py: parse_args adds no arguments)"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--way", "parser", "TREE"],
         "error MW017  checkout TREE 0.19.1 (arguments of core-0.19.0): no arguments from its parser "
         "(parser: ImportError: no torch here)"),
        (["--way", "source", "core-0.16.1"],
         "error MW017  core-0.16.1: no arguments from its source (only a source tree has one)"),
        (["TREE", "installed"], "error MW008  surface of which one? TREE or installed"),
        (["TREE/megatron"],
         "error MW012  megatron.path = TREE/megatron is not a Megatron-LM source tree: no "
         "TREE/megatron/megatron/core/package_info.py"),
        (["core-0.16"],
         "error MW011  'core-0.16' is neither a folder, nor installed, nor a release: core-0.9.0, rocm-2024-10, "
         "core-0.10.0, rocm-2025-08, core-0.11.0, core-0.12.3, core-0.13.1, core-0.14.0, rocm-2026-02, core-0.15.3, "
         "core-0.16.1, core-0.17.1, core-0.18.2, core-0.19.0, main-2026-08"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown(capsys, fork, words, message):
    code, out, err = shown(capsys, *(word.replace("TREE", str(fork)) for word in words))
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == message.replace("TREE", str(fork))


def test_the_cache_is_passed_by_when_asked(capsys, fork):
    shown(capsys, str(fork))
    (fork / "torch.py").write_text("raise ImportError('still no torch')")
    assert "no torch here" in shown(capsys, str(fork))[1]
    assert "still no torch" in shown(capsys, str(fork), "--refresh")[1]
    assert "still no torch" in shown(capsys, str(fork))[1]


def test_an_argument_is_the_same_one_when_it_shares_a_flag():
    before = Surface([Argument(("--a", "--old"), "a", "store", "int"), Argument(("--gone",), "gone", "store")])
    after = Surface([Argument(("--a", "--new"), "a", "store", "float"), Argument(("--came",), "came", "store")])
    found = difference(before, after)
    assert [one.flag for one in found.added] == ["--came"]
    assert [one.flag for one in found.removed] == ["--gone"]
    assert [(one.flag, one.field, one.before, one.after) for one in found.changed] == [
        ("--a", "flags", ("--a", "--old"), ("--a", "--new")),
        ("--a", "type", "int", "float"),
    ]
