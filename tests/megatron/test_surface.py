"""The surfaces: what is known of each release, and how a value is expressed on it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from megawrap.config.sections.place import Megatron
from megawrap.errors import ConfigError
from megawrap.megatron.surface import release, releases, resolve
from megawrap.megatron.surface.ask import NoAnswer
from megawrap.megatron.surface.releases import lifetime

CONF = Path(__file__).parents[2] / "conf/megatron"


def test_every_release_can_be_chosen_by_its_name():
    named = {file.stem for file in CONF.glob("*.yaml")} - {"installed", "checkout"}
    assert named == {one.id for one in releases()}
    for name in named:
        chosen = yaml.safe_load((CONF / f"{name}.yaml").read_text())
        assert chosen == {"source": "release", "release": name}


def test_counts_agree_with_the_data():
    """The number of arguments that was counted when each parser was read."""
    assert {one.id: len(one.surface) for one in releases() if one.id in ("core-0.9.0", "rocm-2026-02")} == {
        "core-0.9.0": 346,
        "rocm-2026-02": 654,
    }


@pytest.mark.parametrize(
    ("name", "value_when_silent"),
    [
        ("--sequence-parallel", False),  # store_true
        ("--masked-softmax-fusion", True),  # only --no-masked-softmax-fusion, a store_false
        ("--persist-layer-norm", True),  # only --no-persist-layer-norm, a store_true of no_persist_layer_norm
        ("--bias-linear", True),  # only --disable-bias-linear, stored as add_bias_linear
        ("apply_rope_fusion", True),  # by the name of the parsed value
        ("--lr-decay-style", "linear"),
        ("--load-optim", True),  # only --no-load-optim, whose default is None
    ],
)
def test_options_have_the_default_that_is_in_force(name, value_when_silent):
    option = release("core-0.19.0").surface.option(name)
    assert option is not None
    assert option.default == value_when_silent


def test_unknown_release_lists_all():
    with pytest.raises(ConfigError) as caught:
        release("core-0.16")
    assert caught.value.findings[0].nearest[0] == "core-0.16.1"


@pytest.mark.parametrize(
    ("flag", "fork", "phrase"),
    [
        ("--fp8-recipe", "nvidia", "--fp8-recipe exists since core-0.12.3"),
        ("--fp8-recipe", "rocm", "--fp8-recipe exists since rocm-2026-02"),
        ("--disable-te-fused-rope", "nvidia", "--disable-te-fused-rope exists only in rocm's fork, since rocm-2024-10"),
        ("--use-legacy-models", "nvidia", "--use-legacy-models existed from core-0.9.0 until core-0.17.1"),
        ("--no-such-flag", "nvidia", None),
    ],
)
def test_lifetime_of_a_flag(flag, fork, phrase):
    assert lifetime(flag, fork) == phrase


def _tree(root: Path, version: tuple[int, int, int], pre: str, arguments: str) -> Path:
    for folder in ("core", "training"):
        (root / "megatron" / folder).mkdir(parents=True)
    numbers = "MAJOR = {}\nMINOR = {}\nPATCH = {}\n".format(*version)
    (root / "megatron/core/package_info.py").write_text(f"{numbers}PRE_RELEASE = '{pre}'\n")
    (root / "megatron/training/arguments.py").write_text(arguments)
    return root


@pytest.mark.parametrize(
    ("version", "pre", "arguments", "expected"),
    [
        ((0, 16, 1), "", "", "core-0.16.1"),
        ((0, 15, 9), "", "", "core-0.15.3"),
        ((0, 15, 0), "", "", "core-0.15.3"),  # of the same minor version, although newer
        ((0, 99, 0), "", "", "main-2026-08"),
        ((0, 15, 0), "rc8", "def get_patch_args(parser): ...", "rocm-2026-02"),
        ((0, 1, 0), "", "", "core-0.9.0"),
    ],
)
def test_a_source_tree_is_taken_for_the_nearest_release_of_its_fork(
    tmp_path, monkeypatch, version, pre, arguments, expected
):
    def ask(*_: object) -> None:
        raise NoAnswer("not asked")

    monkeypatch.setattr("megawrap.megatron.surface.ask.ask", ask)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    target = resolve(Megatron(source="checkout", path=str(_tree(tmp_path, version, pre, arguments))))
    assert target.release.id == expected


def test_a_folder_that_is_no_source_tree(tmp_path):
    with pytest.raises(ConfigError, match="is not a Megatron-LM source tree"):
        resolve(Megatron(source="checkout", path=str(tmp_path)))
    with pytest.raises(ConfigError, match=r"megatron\.path is not set"):
        resolve(Megatron(source="checkout"))


def test_a_path_that_the_system_refuses():
    with pytest.raises(ConfigError, match=r"cannot be read: .*File name too long"):
        resolve(Megatron(source="checkout", path="x" * 300))


def test_a_source_tree_whose_version_cannot_be_read(tmp_path):
    root = _tree(tmp_path, (0, 19, 0), "", "")
    (root / "megatron/core/package_info.py").write_text("MAJOR = (")
    with pytest.raises(ConfigError, match=rf"^megatron\.path = {root} cannot be read: '\(' was never closed"):
        resolve(Megatron(source="checkout", path=str(root)))
