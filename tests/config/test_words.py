"""Values reach the ranks as typed."""

from __future__ import annotations

import pytest

from megawrap.config.compose import compose
from megawrap.config.words import as_sweep
from megawrap.errors import ConfigError


@pytest.mark.parametrize(
    "value",
    [
        "true",
        "1e3",
        "1.50",
        "1_000",
        "007",
        "mlx5_0,mlx5_1",
        "^lo,docker0",
        "a b",
        "it's",
        "a=b",
        "x:y",
        "choice(a)",
        "",
    ],
)
def test_variables_are_text(composed, value):
    found = composed(f"env.X={value}")
    assert found.config.env == {"X": value}
    assert found.origins.of("env.X") == (f"override env.X={value}",)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("env.X=null", None),
        ("+env.X=true", "true"),
        ("env.X='a,b'", "a,b"),
        ('env.X="1e3"', "1e3"),
        ("env.X=a\\,b", "a,b"),
        ("env.X=${model.name}", "Llama tiny"),
    ],
)
def test_what_is_grammar_stays_grammar(composed, word, value):
    assert composed("model.name=Llama tiny", word).config.env == {"X": value}


def test_lists_of_devices_are_text(composed):
    cluster = composed("cluster.ib_hca=mlx5_0,mlx5_1", "cluster.socket_interface=^lo").config.cluster
    assert (cluster.ib_hca, cluster.socket_interface) == ("mlx5_0,mlx5_1", "^lo")


def test_a_mistake_elsewhere_does_not_accuse_a_list():
    with pytest.raises(ConfigError) as refused:
        compose(["env.X=^lo", "cluster.ib_hca=a,b", "parallel.tpp=2"])
    assert [finding.id for finding in refused.value.findings] == ["MW002"]


def test_a_number_does_not_take_a_list():
    with pytest.raises(ConfigError):
        compose(["parallel.tp=1,2"])


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("env.X=true,1e3", "++env.X='true','1e3'"),
        ("+env.X=^lo", "+env.X='^lo'"),
        ("env.X='a,b'", "env.X='a,b'"),
        ("env.X=choice(a,b)", "env.X=choice(a,b)"),
        ("parallel.tp=1,2", "parallel.tp=1,2"),
        ("--multirun", "--multirun"),
    ],
)
def test_a_sweep_over_variables_stays_one(word, expected):
    assert as_sweep(word) == expected
