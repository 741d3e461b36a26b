"""The target's own surface: asked of its parser, cached, known by its files; and what happens when it cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from megawrap.config.sections.place import Megatron
from megawrap.megatron.surface import Argument, Target, release, releases, resolve
from megawrap.megatron.surface.ask import NoAnswer, ask
from megawrap.megatron.surface.fingerprints import match, rows
from megawrap.megatron.surface.make_fingerprints import make

ROOT = Path(__file__).parents[2]
CHECKOUTS = [Path(one) for one in os.environ.get("MEGAWRAP_CHECKOUTS", "").split(os.pathsep) if one]
# A torch that is enough to import a small tree, so that these tests need none.
TORCH = {"torch/__init__.py": "", "torch/utils/__init__.py": "", "torch/utils/cpp_extension.py": "load_inline = None"}
ARGUMENTS = """
    import argparse, enum, os
    from torch.utils.cpp_extension import load_inline
    import triton
    from triton import language as tl
    from megatron.training import get_args, print_rank_0
    from megatron.training.config import WIDTH

    class Backend(enum.Enum):
        flash = 1
        fused = 2

    @triton.jit
    def kernel(): ...

    try:
        load_inline(name="needs a compiler")
    except RuntimeError:
        print("no compiler")

    def pair(words): return words.split(",")

    def parse_args(extra_args_provider=None, ignore_unknown_args=False):
        parser = argparse.ArgumentParser(allow_abbrev=False)
        parser.add_argument("--width", type=int, default=WIDTH)
        parser.add_argument("--world", type=int, default=int(os.getenv("WORLD_SIZE", "1")))
        parser.add_argument("--backend", type=lambda word: Backend[word], default=Backend.fused, choices=list(Backend))
        parser.add_argument("--pair", type=pair, default=(1, 2), nargs="+")
        parser.add_argument("--both", action=argparse.BooleanOptionalAction, default=False)
        parser.add_argument("--no-limit", "--unlimited", action="store_false", dest="limit")
        parser.add_argument("--most", type=float, default=float("inf"))
        if extra_args_provider is not None:
            parser = extra_args_provider(parser)
        return parser.parse_args()
"""
PATCH = """
    def get_patch_args(parser):
        parser.add_argument("--keep_fp8_weight_transpose_cache", action="store_true")
        return parser
"""
ROWS = [
    {"flags": ["--backend"], "dest": "backend", "action": "store", "type": "enum", "choices": ["flash", "fused"],
     "default": "fused"},
    {"flags": ["--both", "--no-both"], "dest": "both", "action": "boolean_optional", "default": False},
    {"flags": ["--most"], "dest": "most", "action": "store", "type": "float", "default": "inf"},
    {"flags": ["--no-limit", "--unlimited"], "dest": "limit", "action": "store_false", "default": True},
    {"flags": ["--pair"], "dest": "pair", "action": "store", "type": "pair", "nargs": "+", "default": [1, 2]},
    {"flags": ["--width"], "dest": "width", "action": "store", "type": "int", "default": 4},
    {"flags": ["--world"], "dest": "world", "action": "store", "type": "int", "default": 1},
]  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "megawrap" / "surfaces"


def write(root: Path, arguments: str, **more: str) -> Path:
    files = {
        **TORCH,
        "megatron/training/__init__.py": "raise SystemExit('the whole training program is imported')",
        "megatron/training/arguments.py": arguments,
        "megatron/training/config.py": "WIDTH = 4",
        "megatron/core/__init__.py": "",
        "megatron/core/package_info.py": "MAJOR = 0\nMINOR = 19\nPATCH = 1\nPRE_RELEASE = ''\n",
        **more,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def fork(weird_path: Path) -> Path:
    """A small tree whose imports work, at a path that breaks careless quoting."""
    return write(weird_path, dedent(ARGUMENTS))


def target(root: Path, **words: object) -> Target:
    return resolve(Megatron(source="checkout", path=str(root)), **words)


def no_subprocess(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object, **_: object) -> None:
        raise AssertionError(f"started {words}")

    monkeypatch.setattr(subprocess, "Popen", refuse)


def test_the_parser_is_asked(fork, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "8")
    before = sorted(fork.rglob("*"))
    assert ask(fork) == ROWS
    assert sorted(fork.rglob("*")) == before, "something was written into the tree"


def test_what_rocms_entry_adds_is_there(tmp_path):
    rows = ask(write(tmp_path, dedent(ARGUMENTS) + dedent(PATCH)))
    assert [row["flags"] for row in rows if row not in ROWS] == [["--keep_fp8_weight_transpose_cache"]]


def test_the_parsers_answer_is_the_surface_and_both_ways_agree(fork):
    asked, read = target(fork, way="parser"), target(fork, way="source")
    assert (asked.way, read.way) == ("parser", "source")
    assert asked.surface.arguments == read.surface.arguments == tuple(map(Argument.from_row, ROWS))
    assert asked.name == f"checkout {fork} 0.19.1 (arguments from its parser)"
    assert read.name == f"checkout {fork} 0.19.1 (arguments from its source)"
    assert asked.as_dict() == {
        "name": asked.name, "release": "core-0.19.0", "version": "0.19.1", "way": "parser"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("import not_a_package", "ModuleNotFoundError: No module named 'not_a_package'"),
        ("def parse_args(extra_args_provider, ignore_unknown_args): ...",
         "parse_args does not call extra_args_provider"),
        ("def parse_args(extra_args_provider, ignore_unknown_args):\n    import argparse\n"
         "    extra_args_provider(argparse.ArgumentParser())", "its parser has no arguments"),
        ("import os; os._exit(3)", "exit code 3"),
    ],
    ids=["import", "no provider", "empty", "silent"],
)  # fmt: skip
def test_a_parser_that_cannot_be_asked_says_why(tmp_path, arguments, reason):
    with pytest.raises(NoAnswer) as caught:
        ask(write(tmp_path, arguments))
    assert str(caught.value) == reason


def test_a_parser_that_hangs_is_given_up(tmp_path):
    with pytest.raises(NoAnswer, match=r"^no answer within 0\.5 s$"):
        ask(write(tmp_path, "import time\ntime.sleep(600)"), timeout_seconds=0.5)


def test_a_python_that_is_not_there(fork):
    with pytest.raises(NoAnswer, match=r"^/no/such/python: No such file or directory$"):
        ask(fork, "/no/such/python")


def test_the_python_of_the_ranks_is_asked(fork, tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\necho asked >> '{tmp_path}/log'\nexec '{sys.executable}' \"$@\"\n")
    python.chmod(0o755)
    assert target(fork, python=str(python)).way == "parser"
    assert target(fork).way == "parser"
    assert (tmp_path / "log").read_text() == "asked\n"


def test_without_its_imports_the_source_is_read(fork):
    (fork / "megatron/training/config.py").write_text("import not_a_package\nWIDTH = 4")
    found = target(fork)
    assert found.way == "source"
    assert found.correction.reasons == ("parser: ModuleNotFoundError: No module named 'not_a_package'",)
    assert found.surface.arguments == tuple(map(Argument.from_row, ROWS))
    assert found.findings == ()


@pytest.mark.parametrize("content", [b"x = (", b"\xff\xfe"], ids=["syntax", "bytes"])
def test_without_either_the_release_stands_in_and_that_is_said(tmp_path, content):
    (write(tmp_path, "") / "megatron/training/arguments.py").write_bytes(content)
    found = target(tmp_path)
    assert found.way == "bundled"
    assert found.surface is release("core-0.19.0").surface
    (finding,) = found.findings
    assert (finding.id, finding.severity, finding.keys) == ("MW017", "warning", ("megatron.path",))
    said = f"checkout {tmp_path} 0.19.1 (arguments of core-0.19.0): it could not tell its own (parser: SyntaxError: "
    assert finding.message.startswith(said)
    assert "; source: megatron/training/arguments.py: " in finding.message


def test_a_known_answer_starts_no_process(fork, cache, monkeypatch):
    first = target(fork)
    no_subprocess(monkeypatch)
    again = target(fork)
    assert (again.way, again.surface.arguments) == (first.way, first.surface.arguments)
    assert all(file.suffix == ".json" for file in cache.iterdir())
    with pytest.raises(AssertionError, match="started"):
        target(fork, refresh=True)


def test_a_failure_is_known_too(tmp_path, monkeypatch):
    root = write(tmp_path, "import not_a_package")
    assert target(root).way == "bundled"
    no_subprocess(monkeypatch)
    assert target(root).findings[0].id == "MW017"


def test_a_file_that_makes_the_parser_has_changed(fork):
    target(fork)
    (fork / "megatron/training/config.py").write_text("WIDTH = 77")
    assert target(fork).surface.defaults()["width"] == 77
    (fork / "megatron/training/config.py").write_text("WIDTH = 4")
    assert target(fork).surface.defaults()["width"] == 4


def test_another_file_has_changed(fork, monkeypatch):
    target(fork)
    no_subprocess(monkeypatch)
    (fork / "megatron/core/__init__.py").write_text("# other")
    assert target(fork).way == "parser"


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"files": 3}', b'{"way": "parser", "rows": [{}]}'])
def test_a_damaged_cache_is_made_again(fork, cache, damage):
    whole = target(fork)
    files = {file: file.read_bytes() for file in cache.iterdir()}
    assert len(files) == 2
    for file in files:
        file.write_bytes(damage)
    again = target(fork)
    assert (again.way, again.surface.arguments) == ("parser", whole.surface.arguments)
    assert {file: file.read_bytes() for file in cache.iterdir()} == files


@pytest.mark.parametrize("home", ["a file", "not absolute"])
def test_a_cache_that_cannot_be_written_is_no_error(fork, tmp_path, monkeypatch, home):
    (tmp_path / "occupied").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "occupied") if home == "a file" else "relative")
    assert target(fork).way == "parser"
    assert not Path("relative").exists()


def test_a_flag_of_the_fork_alone_is_accepted_in_a_plan(tmp_path, planned):
    """A tree with every argument of a release, and two that no release has."""
    lines = ["import argparse", "def parse_args(extra_args_provider=None, ignore_unknown_args=False):",
             "    parser = argparse.ArgumentParser()"]  # fmt: skip
    for one in release("core-0.19.0").surface.arguments:
        if one.action == "boolean_optional":
            lines.append(f"    parser.add_argument({one.flags[0]!r}, dest={one.dest!r}, default={one.default!r},"
                         " action=argparse.BooleanOptionalAction)")  # fmt: skip
            continue
        kind = f"type={one.type}, " if one.type in ("int", "float", "str") else ""
        store = f"{kind}nargs={one.nargs!r}, choices={one.choices!r}, " if one.takes_value else ""
        flags = ", ".join(map(repr, one.flags))
        lines.append(f"    parser.add_argument({flags}, {store}action={one.action!r}, dest={one.dest!r},"
                     f" default={one.default!r})")  # fmt: skip
    lines += [
        "    parser.add_argument('--disable-te-fused-rope', action='store_true')",
        "    parser.add_argument('--keep_fp8_weight_transpose_cache', action='store_true')",
        "    parser = extra_args_provider(parser) if extra_args_provider else parser",
        "    return parser.parse_args()",
    ]
    root = write(tmp_path, "\n".join(lines))
    words = ["model=llama_tiny", "cluster=cpu", "data=sample"]
    fork_only = ["+megatron.args.disable_te_fused_rope=true", "+megatron.args.keep_fp8_weight_transpose_cache=true"]
    plan = planned(*words, *fork_only, "megatron=checkout", f"megatron.path={root}")
    assert plan.target.way == "parser"
    assert {"--disable-te-fused-rope", "--keep_fp8_weight_transpose_cache"} <= set(plan.compiled.argv())
    with pytest.raises(ValueError, match="has no argument --disable-te-fused-rope"):
        planned(*words, *fork_only, "megatron=core-0.19.0")


@pytest.mark.train
def test_the_installed_package_is_known_and_planning_with_it_stays_light():
    code = (
        "import sys, subprocess; subprocess.Popen = None\n"
        "from megawrap.config.sections.place import Megatron\n"
        "from megawrap.megatron.surface import resolve\n"
        "print(resolve(Megatron()).way, [name for name in ('torch', 'megatron') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "fingerprint []\n"


@pytest.mark.train
def test_the_installed_package_by_both_ways():
    asked, read = resolve(Megatron(), way="parser"), resolve(Megatron(), way="source")
    assert (asked.way, read.way) == ("parser", "source")
    by_flags = {one.flags: one for one in read.surface.arguments}
    differing = [one.flag for one in asked.surface.arguments if by_flags.get(one.flags) != one]
    assert (differing, len(read.surface)) == ([], len(asked.surface))
    assert read.correction.notes == ()
    assert resolve(Megatron()).surface.defaults() == asked.surface.defaults()


@pytest.mark.train
@pytest.mark.skipif(not CHECKOUTS, reason="MEGAWRAP_CHECKOUTS names no Megatron-LM checkouts")
@pytest.mark.parametrize("checkout", CHECKOUTS, ids=lambda path: path.name)
def test_checkouts_by_both_ways(checkout):
    asked, read = target(checkout, way="parser"), target(checkout, way="source")
    if asked.way != "parser":
        pytest.skip(f"{checkout}: {asked.correction.reasons}")
    rows = {one.flags: one for one in asked.surface.arguments}
    assert {one.flags: one for one in read.surface.arguments} == rows
    known = match(checkout)
    assert known is None or {one.flags: one for one in known.surface.arguments} == rows


def test_every_bundled_release_is_known_by_its_files():
    assert {row["release"] for row in rows()} == {one.id for one in releases()}


def test_a_tree_with_other_arguments_gets_no_fingerprint(fork):
    with pytest.raises(ValueError, match=r"has other arguments than core-0\.19\.0: .*--width"):
        make("core-0.19.0", fork)
