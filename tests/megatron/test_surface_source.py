"""Way "source": what is read out of trees that say it in every style, and what is done when they do not say it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from megawrap.megatron.surface import Argument, Surface, release, releases
from megawrap.megatron.surface.source import Source, Tree, Unreadable, read

NOTHING = Surface(())
FACTORY = "class ArgumentGroupFactory:\n    def __init__(self, config, exclude=None): ...\n"
CHECKOUTS = [Path(one) for one in os.environ.get("MEGAWRAP_CHECKOUTS", "").split(os.pathsep) if one]


def tree(root: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        path = root / "megatron" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return Tree(root)


def by_hand(body: str, top: str = "") -> str:
    """An arguments.py whose parser has what ``body`` adds to ``group``."""
    added = "".join(f"    {line}\n" for line in dedent(body).strip().splitlines())
    return (
        f"import argparse\nimport os\n{dedent(top)}\n"
        "def parse_args(extra_args_provider=None, ignore_unknown_args=False):\n"
        "    parser = argparse.ArgumentParser(allow_abbrev=False)\n"
        "    parser = _add(parser)\n"
        "    if extra_args_provider is not None:\n        parser = extra_args_provider(parser)\n"
        "    args = parser.parse_args()\n    return args\n"
        f"def _add(parser):\n    group = parser.add_argument_group(title='all')\n{added}    return parser\n"
    )


def source(root: Path, files: dict[str, str], nearest: Surface = NOTHING) -> Source:
    return read(tree(root, files), nearest)


def rows(found: Source) -> dict[str, dict[str, Any]]:
    return {" ".join(row.pop("flags")): row for row in found.rows}


def test_add_argument_in_all_its_forms(tmp_path):
    top = """
        from megatron.core.enums import Backend, Kind
        LIMIT = 2 ** 5
        def pair(words): return words.split(",")
    """
    enums = """
        import enum
        class Backend(enum.Enum):
            flash = 1
            fused = enum.auto()
        class Kind(enum.Enum):
            A = "a-value"
            B = "b-value"
    """
    body = """
        group.add_argument('--layers', '--num-layers', type=int, default=None)
        group.add_argument('--big', type=float, default=LIMIT * 1024 + 0.5)
        group.add_argument('--on', action='store_true')
        group.add_argument('--no-x', action='store_false', dest='x', default=None)
        group.add_argument('--both', action=argparse.BooleanOptionalAction, default=False, type=bool)
        group.add_argument('--backend', type=lambda word: Backend[word], default=Backend.fused, choices=list(Backend))
        group.add_argument('--kind', choices=[one.value for one in Kind if one is not Kind.A])
        group.add_argument('--ranks', nargs='+', type=int, default=[0])
        group.add_argument('--level', type=int, choices=range(0, 3))
        group.add_argument('--pair', type=pair),
        group.add_argument('--world', type=int, default=int(os.getenv('WORLD_SIZE', '1')))
        for name in ('a', 'b'):
            group.add_argument(f'--each-{name}', default='-' + name)
        exclusive = group.add_mutually_exclusive_group()
        exclusive.add_argument('--one', default=-float('inf'), type=float)
        (group.add_argument('--in-a-tuple', default=1), )
    """
    found = source(tmp_path, {"training/arguments.py": by_hand(body, top), "core/enums.py": enums})
    assert found.notes == ()
    store: dict[str, Any] = {"action": "store"}
    assert rows(found) == {
        "--backend": {
            **store, "dest": "backend", "type": "enum", "choices": ["flash", "fused"], "default": "fused"
        },
        "--big": {**store, "dest": "big", "type": "float", "default": 32768.5},
        "--both --no-both": {"dest": "both", "action": "boolean_optional", "type": "bool", "default": False},
        "--each-a": {**store, "dest": "each_a", "default": "-a"},
        "--each-b": {**store, "dest": "each_b", "default": "-b"},
        "--in-a-tuple": {**store, "dest": "in_a_tuple", "default": 1},
        "--kind": {**store, "dest": "kind", "choices": ["b-value"]},
        "--layers --num-layers": {**store, "dest": "layers", "type": "int"},
        "--level": {**store, "dest": "level", "type": "int", "choices": [0, 1, 2]},
        "--no-x": {"dest": "x", "action": "store_false"},
        "--on": {"dest": "on", "action": "store_true", "default": False},
        "--one": {**store, "dest": "one", "type": "float", "default": "-inf"},
        "--pair": {**store, "dest": "pair", "type": "pair"},
        "--ranks": {**store, "dest": "ranks", "type": "int", "nargs": "+", "default": [0]},
        "--world": {**store, "dest": "world", "type": "int", "default": 1},
    }  # fmt: skip


def test_fields_of_a_dataclass_become_arguments(tmp_path):
    config = """
        import dataclasses
        import signal
        from dataclasses import dataclass, field
        from typing import Callable, ClassVar, List, Literal, Optional, Union
        from megatron.core.base import Base
        Mode = Literal["fast", "exact"]

        @dataclass
        class Config(Base):
            count: ClassVar[int] = 3
            plain_int: int = 4
            small: float = 1e-5
            maybe: Optional[int] = None
            newer: int | None = 7
            older: Union[str, None] = "x"
            off: bool = False
            on: bool = True
            unsaid: Optional[bool] = None
            mode: Mode = "fast"
            level: Literal[0, 1] = 0
            many: List[str] = field(default_factory=list)
            some: list[int] | None = dataclasses.field(default_factory=lambda: [1, 2])
            signal: signal.Signals = signal.SIGTERM
            inner: int = field(init=False, default=0)
            secret: Callable = None
            hidden: int = 1
            renamed: bool = field(default=True, metadata={"argparse_meta": {"arg_names": ["--not-it"], "dest": "it"}})
            three: int | str | None = field(default=None, metadata={"argparse_meta": {"type": int, "nargs": 3}})
    """
    base = """
        from dataclasses import dataclass
        from abc import ABC
        @dataclass
        class Base(ABC):
            first: int = 0
            plain_int: int = 1
    """
    arguments = by_hand(
        """
        from megatron.training.config import Config
        exclude = ["hidden"]
        exclude += ["secret"]
        factory = ArgumentGroupFactory(Config, exclude=exclude)
        group = factory.build_group(parser, "config")
        group.add_argument("--by-hand", default="y")
        """,
        "from megatron.training.argument_utils import ArgumentGroupFactory",
    )
    files = {
        "training/arguments.py": arguments,
        "training/argument_utils.py": FACTORY,
        "training/config/__init__.py": "from .config import Config",
        "training/config/config.py": config,
        "core/base.py": base,
    }
    inside = tree(tmp_path, files)
    found = read(inside, NOTHING)
    assert found.notes == ()
    assert sorted(inside.files) == sorted(f"megatron/{name}" for name in files)
    made = rows(found)
    choices = made["--signal"].pop("choices")
    assert {"SIGINT", "SIGTERM"} <= set(choices)
    store: dict[str, Any] = {"action": "store"}
    assert made == {
        "--by-hand": {**store, "dest": "by_hand", "default": "y"},
        "--first": {**store, "dest": "first", "type": "int", "default": 0},
        "--level": {**store, "dest": "level", "type": "int", "choices": [0, 1], "default": 0},
        "--many": {**store, "dest": "many", "type": "str", "nargs": "+", "default": []},
        "--maybe": {**store, "dest": "maybe", "type": "int"},
        "--mode": {**store, "dest": "mode", "type": "str", "choices": ["fast", "exact"], "default": "fast"},
        "--newer": {**store, "dest": "newer", "type": "int", "default": 7},
        "--no-on --disable-on": {"dest": "on", "action": "store_false", "default": True},
        "--no-unsaid --disable-unsaid": {"dest": "unsaid", "action": "store_false"},
        "--not-it": {"dest": "it", "action": "store_false", "default": True},
        "--off": {"dest": "off", "action": "store_true", "default": False},
        "--older": {**store, "dest": "older", "type": "str", "default": "x"},
        "--plain-int": {**store, "dest": "plain_int", "type": "int", "default": 4},
        "--signal": {**store, "dest": "signal", "type": "enum", "default": "SIGTERM"},
        "--small": {**store, "dest": "small", "type": "float", "default": 1e-5},
        "--some": {**store, "dest": "some", "type": "int", "nargs": "+", "default": [1, 2]},
        "--three": {**store, "dest": "three", "type": "int", "nargs": 3},
    }


def test_rocms_patch_changes_arguments_that_are_there(tmp_path):
    patch = """
        def get_patch_args(parser):
            group = parser.add_argument_group(title="patch")
            for action in vars(group)["_actions"]:
                if isinstance(action, argparse._StoreAction):
                    if "--tokenizer-type" in action.option_strings:
                        action.default = "NullTokenizer"
            for action in vars(group)["_actions"]:
                if isinstance(action, argparse._StoreAction):
                    if "--optimizer" in action.option_strings:
                        action.choices.append("hybridadam")
            has_rotary_base = False
            for action in vars(group)["_actions"]:
                if isinstance(action, argparse._StoreAction):
                    if "--rotary-base" in action.option_strings:
                        has_rotary_base = True
            if not has_rotary_base:
                group.add_argument("--rotary-base", type=int, default=1)
            group.add_argument("--train-mode", default="pretrain", type=str)
            return parser
    """
    body = """
        group.add_argument('--tokenizer-type', type=str)
        group.add_argument('--optimizer', type=str, choices=['adam', 'sgd'], default='adam')
        group.add_argument('--rotary-base', type=int, default=10000)
    """
    found = source(tmp_path, {"training/arguments.py": by_hand(body) + dedent(patch)})
    assert found.notes == ()
    made = rows(found)
    assert made["--tokenizer-type"]["default"] == "NullTokenizer"
    assert made["--optimizer"]["choices"] == ["adam", "sgd", "hybridadam"]
    assert made["--rotary-base"]["default"] == 10000
    assert "--train-mode" in made


def test_what_is_left_open_is_taken_from_the_release_and_said(tmp_path):
    body = """
        group.add_argument('--known', type=float, default=compute())
        group.add_argument('--fork-only', choices=compute(), default=3)
        if compute():
            group.add_argument('--there', default=1)
            group.add_argument('--not-there', default=1)
        try:
            import outside
            HAVE = True
        except ImportError:
            HAVE = False
        if HAVE:
            group.add_argument('--with-outside')
        for one in compute():
            group.add_argument('--' + one)
        group.add_argument('--' + compute())
        outside.add_more(parser)
    """
    nearest = Surface(
        [Argument(("--known",), "known", "store", default=0.5), Argument(("--there",), "there", "store", default=9)]
    )
    found = source(tmp_path, {"training/arguments.py": by_hand(body, "from outside import compute")}, nearest)
    made = rows(found)
    assert made["--known"] == {"dest": "known", "action": "store", "type": "float", "default": 0.5}
    assert made["--fork-only"] == {"dest": "fork_only", "action": "store", "default": 3}
    assert set(made) == {"--known", "--fork-only", "--there"}
    assert found.notes == (
        "arguments.py:25: a loop over compute() is not followed",
        "arguments.py:27: the name of an argument is not told",
        "arguments.py:28: outside.add_more(parser) is not followed",
        "--known: default taken from the release",
        "--fork-only: choices not told, and not in the release",
        "--there: added under a condition; kept, as in the release",
        "--not-there: added under a condition; left out, as not in the release",
        "--with-outside: added under a condition; left out, as not in the release",
    )


def test_a_switch_whose_default_is_not_told_has_the_flags_of_the_release(tmp_path):
    files = {
        "training/arguments.py": by_hand("ArgumentGroupFactory(Config).build_group(parser)\n"
                                         "group.add_argument('--more')",
                                         "from megatron.training.config import ArgumentGroupFactory, Config"),
        "training/config.py": FACTORY + dedent("""
            from dataclasses import dataclass
            from outside import DEFAULT
            @dataclass
            class Config:
                open_one: bool = DEFAULT
        """),
    }  # fmt: skip
    nearest = Surface([Argument(("--no-open-one",), "open_one", "store_false", default=True)])
    found = source(tmp_path, files, nearest)
    assert rows(found)["--no-open-one"] == {"dest": "open_one", "action": "store_false", "default": True}
    assert found.notes == ("open_one: flags taken from the release",)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "there is no megatron/training/arguments.py"),
        ({"training/arguments.py": "x = ("},
         "megatron/training/arguments.py: '(' was never closed (<unknown>, line 1)"),
        ({"training/arguments.py": "x = 1"}, "megatron/training/arguments.py: parse_args adds no arguments"),
        ({"training/arguments.py": by_hand("ArgumentGroupFactory(Config).build_group(parser)", FACTORY)},
         "arguments.py:15: ArgumentGroupFactory(Config) cannot be told from the source"),
        ({"training/arguments.py": by_hand(
            "ArgumentGroupFactory(Config).build_group(parser)",
            FACTORY + "from outside import Base\nclass Config(Base): ...\n")},
         "arguments.py: the base Base cannot be told from the source"),
    ],
    ids=["empty", "broken", "no parser", "unknown class", "unknown base"],
)  # fmt: skip
def test_a_source_that_does_not_show_its_parser(tmp_path, files, message):
    with pytest.raises(Unreadable) as caught:
        source(tmp_path, files)
    assert str(caught.value) == message


def test_a_name_that_python_binds_in_one_of_two_ways_is_open(tmp_path):
    top = """
        try:
            from outside import SIZE
        except ImportError:
            SIZE = 3
        WIDTH = 4
    """
    body = "group.add_argument('--size', default=SIZE)\ngroup.add_argument('--width', default=WIDTH)"
    found = source(tmp_path, {"training/arguments.py": by_hand(body, top)})
    assert found.notes == ("--size: default not told, and not in the release",)
    assert rows(found)["--width"]["default"] == 4


def written_out(arguments: Iterable[Argument]) -> str:
    """The code that adds ``arguments``, as Megatron's authors would have written it."""
    lines = []
    for one in arguments:
        words = [repr(flag) for flag in one.flags]
        if one.action == "boolean_optional":
            words = [word for word in words if not word.startswith("'--no-")]
            words.append("action=argparse.BooleanOptionalAction")
        elif one.action != "store":
            words.append(f"action={one.action!r}")
        words.append(f"dest={one.dest!r}")
        words += [f"type={'lambda word: Word[word]' if one.type == 'enum' else one.type}"] if one.type else []
        words += [f"{name}={value!r}" for name in ("nargs", "choices") if (value := getattr(one, name)) is not None]
        lines.append(f"group.add_argument({', '.join(words)}, default={one.default!r})")
    return "\n".join(lines)


@pytest.mark.parametrize("name", [one.id for one in releases()])
def test_every_release_written_out_is_read_back(tmp_path, name):
    surface = release(name).surface
    found = source(
        tmp_path,
        {"training/arguments.py": by_hand(written_out(surface.arguments), "import enum\nclass Word(enum.Enum): A = 1")},
    )
    assert found.notes == ()
    assert {one.flags: one for one in map(Argument.from_row, found.rows)} == {
        one.flags: one for one in surface.arguments
    }
