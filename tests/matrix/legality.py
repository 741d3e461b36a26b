"""Every model x parallel x precision preset under five releases of Megatron: what is legal, and what refuses the rest.

    python tests/matrix/legality.py --write    # legality.txt anew, after a change of rules or presets
    python tests/matrix/legality.py            # print it

Hydra takes a fifth of a second to compose a configuration, too long for each of tens of thousands. So every choice of a
group is composed once, what it changes is noted, and the configurations are put together from changes; test_matrix.py
compares a sample with whole compositions.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import functools
import itertools
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from megawrap.config import schema
from megawrap.config.compose import choices_of, compose
from megawrap.config.origins import Origins
from megawrap.config.sections.root import Config
from megawrap.errors import ConfigError, errors
from megawrap.hardware import machine
from megawrap.plan import build

SNAPSHOT = Path(__file__).with_name("legality.txt")
RELEASES = ("core-0.14.0", "core-0.16.1", "core-0.19.0", "rocm-2026-02", "main-2026-08")
# The GPU that has every number format; for the tiny models the CPU that they are made for, which has no FP8.
GPU, CPU = "mi355x", "cpu"
GPUS_PER_NODE = 8
BASE = "base"  # a file that others of its group build on
# A container that tells of nothing that matters here; undeclared, this machine's packages would be looked at.
CONTAINER = {"torch": "2.9.0"}

Changes = Mapping[str, Any]
Ids = tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Axes:
    """Cluster -> its configuration without a model; (group, choice, cluster) -> what the choice changes there."""

    bases: Mapping[str, Config]
    changes: Mapping[tuple[str, str, str], Changes]

    def names(self, group: str, model: str) -> list[str]:
        """Choices of ``group`` that concern ``model``: expert parallelism is for models with experts, and FP8 not for
        CPU."""
        cluster = cluster_of(model)
        has_experts = self.changes["model", model, cluster].get("model.num_experts")
        unfit = {"parallel": () if has_experts else ("parallel.ep",),
                 "precision": ("precision.fp8_format",) if cluster == CPU else ()}.get(group, ())  # fmt: skip
        return [name for (of, name, on), changes in self.changes.items()
                if (of, on) == (group, cluster) and not any(key in changes for key in unfit)]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Row:
    """A model under a release: (parallel preset, precision preset) -> ids of the rules that refuse it."""

    model: str
    release: str
    cells: Mapping[tuple[str, str], Ids]


def names_of(all_: Axes, group: str) -> list[str]:
    """Every choice of ``group``."""
    return list(dict.fromkeys(name for of, name, _ in all_.changes if of == group))


def cluster_of(model: str) -> str:
    """Where a model is tried."""
    return CPU if model.endswith("_tiny") else GPU


def axes(run: Callable[..., Any] = map) -> Axes:
    """Compose every choice once. ``run`` is a ``map``, Python's or a pool's."""
    choices = {group: choices_of(group) for group in ("model", "parallel", "precision")} | {"megatron": RELEASES}
    cells = [
        (group, name, cluster)
        for group, names in choices.items()
        for name in names
        for cluster in (GPU, CPU)
        if name != BASE and (group != "model" or cluster == cluster_of(name))
    ]
    without = [[f"cluster={cluster}"] for cluster in (GPU, CPU)]
    configs = list(run(composed, [*without, *([f"{group}={name}", f"cluster={on}"] for group, name, on in cells)]))
    bases = dict(zip((GPU, CPU), configs, strict=False))
    changes = {at: dict(_changes(one, bases[at[2]])) for at, one in zip(cells, configs[2:], strict=True)}
    return Axes(bases, changes)


def composed(words: list[str]) -> Config:
    """A whole composition. The run directory is fixed: it would hold the time."""
    return compose([*words, "run.dir=runs/matrix"]).config


def _changes(config: Config, base: Config) -> Iterator[tuple[str, Any]]:
    for key in schema.fields():
        if schema.get(config, key) != schema.get(base, key):
            yield key, schema.get(config, key)


def changed(config: Config, changes: Changes) -> Config:
    """``config`` with other values at ``changes``' keys (section.option, or env)."""
    sections: dict[str, Any] = {}
    for key, value in changes.items():
        section, _, name = key.partition(".")
        old = sections.get(section, getattr(config, section))
        sections[section] = dataclasses.replace(old, **{name: value}) if name else value
    return dataclasses.replace(config, **sections)


def cell(all_: Axes, model: str, layout: str, precision: str, release: str) -> Config:
    """The configuration of a cell, on as few nodes as hold its layout."""
    cluster = cluster_of(model)
    return changed(_without_release(all_, model, layout, precision), all_.changes["megatron", release, cluster])


@functools.lru_cache(1)
def _without_release(all_: Axes, model: str, layout: str, precision: str) -> Config:
    cluster = cluster_of(model)
    config = all_.bases[cluster]
    for group, name in (("parallel", layout), ("precision", precision), ("model", model)):
        config = changed(config, all_.changes[group, name, cluster])
    nodes = 1 if cluster == CPU else nodes_for(config)
    return changed(config, {"cluster.nodes": nodes, "cluster.container": CONTAINER})


def nodes_for(config: Config) -> int:
    """The fewest whole nodes that hold a layout: experts are split over TP as the rest is."""
    one = config.parallel
    return math.lcm(GPUS_PER_NODE, one.pp * math.lcm(one.tp * one.cp, one.tp * one.ep)) // GPUS_PER_NODE


def words_of(config: Config, model: str, layout: str, precision: str, release: str) -> list[str]:
    """The same cell on the command line."""
    return [f"model={model}", f"parallel={layout}", f"precision={precision}", f"megatron={release}",
            f"cluster={cluster_of(model)}", f"cluster.nodes={config.cluster.nodes}",
            *(f"cluster.container.{name}={version}" for name, version in CONTAINER.items())]  # fmt: skip


def refused_by(config: Config) -> Ids:
    """Ids of the errors of a configuration, in an empty shell; none: it is legal."""
    try:
        findings = build(SimpleNamespace(config=config, origins=Origins({})), ambient={}).findings  # type: ignore[arg-type]
    except ConfigError as problem:
        findings = problem.findings
    return tuple(sorted({finding.id for finding in errors(findings)}))


def rows_of(model: str, all_: Axes) -> list[Row]:
    """The rows of a model."""
    machine.detect = lambda: None  # what this machine has plays no part, and looking takes its time
    pairs = list(itertools.product(all_.names("parallel", model), all_.names("precision", model)))
    cells: dict[str, dict[tuple[str, str], Ids]] = {release: {} for release in RELEASES}
    for pair, release in itertools.product(pairs, RELEASES):
        cells[release][pair] = refused_by(cell(all_, model, *pair, release))
    return [Row(model, release, cells[release]) for release in RELEASES]


def matrix(workers: int = os.cpu_count() or 2) -> tuple[Axes, list[Row]]:
    """The whole table, and what it was put together from."""
    with concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        all_ = axes(functools.partial(pool.map, chunksize=8))
        each = pool.map(functools.partial(rows_of, all_=all_), names_of(all_, "model"))
        return all_, list(itertools.chain.from_iterable(each))


def main() -> None:
    """Run from the command line."""
    from legality_table import table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {SNAPSHOT.name}")
    options = parser.parse_args()
    start = time.monotonic()
    _, found = matrix()
    cells = sum(len(row.cells) for row in found)
    if options.write:
        SNAPSHOT.write_text(table(found), encoding="utf-8")
    else:
        sys.stdout.write(table(found))
    print(f"{cells} configurations in {time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
