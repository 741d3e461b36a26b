"""How fast the tools of `megawrap data` go through files, against `cp` of the same files.

    python benchmarks/data_tools.py [--megabytes 1000] [--rounds 5] [--folder DIR]

Shards of random uint16 ids and log-normal documents (median 650 tokens). Interleaved; each round copies the shards
with cp, then merges, verifies (--deep) and splits them; rates are bytes of .bin and .idx by seconds, ratios are by
round. `cp and sync` also flushes its copies to the disk, as merge and split do before they give a file its name.
Bars: merge at 0.8 of `cp and sync`, verify --deep at 0.8 of `cp`.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from megawrap.preprocess.indexed.writer import write_index
from megawrap.preprocess.tools.merge import merge
from megawrap.preprocess.tools.split import split
from megawrap.preprocess.tools.verify import verify

SHARDS = 4
VOCABULARY = 32_000
BAR = 0.8


def make(prefix: str, megabytes: float, seed: int) -> None:
    """Write a shard of about so many megabytes."""
    rng = np.random.default_rng(seed)
    count = max(1, int(megabytes * 1e6 / 2 / 1336))  # the mean of the distribution below
    lengths = np.maximum(1, rng.lognormal(6.48, 1.2, count)).astype("<i4")
    ids = rng.integers(0, VOCABULARY, 1 << 20).astype("<u2")
    with Path(f"{prefix}.bin").open("wb") as file:
        left = int(lengths.sum())
        while left:
            left -= file.write(ids[: min(left, len(ids))].tobytes()) // 2
    sides = [Path(f"{prefix}.lengths"), Path(f"{prefix}.ends")]
    sides[0].write_bytes(lengths.tobytes())
    sides[1].write_bytes(np.arange(1, count + 1, dtype="<i8").tobytes())
    write_index(Path(f"{prefix}.idx"), "<u2", *sides)
    for side in sides:
        side.unlink()


def tasks(folder: Path, shards: list[str]) -> dict[str, Callable[[Path], object]]:
    """What is measured; each is given an empty folder to write to."""
    files = [f"{shard}{suffix}" for shard in shards for suffix in (".bin", ".idx")]
    whole = str(folder / "whole")

    def copy(to: Path, *, sync: bool) -> None:
        subprocess.run(["cp", *files, str(to)], check=True)
        if sync:
            subprocess.run(["sync", *map(str, to.iterdir())], check=True)

    def check(_: Path) -> None:
        assert all(verify(shard, deep=True, vocab_size=VOCABULARY).is_sound for shard in shards)

    return {
        "cp": lambda to: copy(to, sync=False),
        "verify --deep": check,
        "cp and sync": lambda to: copy(to, sync=True),
        "merge": lambda to: merge(shards, str(to / "out")),
        "split 98,1,1": lambda to: split(whole, [Fraction(98), Fraction(1), Fraction(1)], str(to / "out")),
        "split --seed": lambda to: split(whole, [Fraction(98), Fraction(1), Fraction(1)], str(to / "out"), seed=1),
    }


def seconds(task: Callable[[Path], object], to: Path) -> float:
    """The time of a task, begun with nothing left to be written."""
    subprocess.run(["sync"], check=True)
    to.mkdir()
    begin = time.perf_counter()
    task(to)
    taken = time.perf_counter() - begin
    shutil.rmtree(to)
    return taken


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to work (the system's folder for temporary files)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place)
        shards = [str(folder / f"shard{number}") for number in range(SHARDS)]
        for number, shard in enumerate(shards):
            make(shard, options.megabytes / SHARDS, number)
        merge(shards, str(folder / "whole"))
        size = sum(Path(f"{shard}{suffix}").stat().st_size for shard in shards for suffix in (".bin", ".idx"))
        times: dict[str, list[float]] = {name: [] for name in tasks(folder, shards)}
        for _ in range(options.rounds):
            for name, task in tasks(folder, shards).items():
                times[name].append(seconds(task, folder / "to"))
    return report(times, size, options.rounds)


def report(times: dict[str, list[float]], size: int, rounds: int) -> int:
    """Print rates and ratios; 1 when a bar is missed."""
    print(f"{size / 1e6:,.0f} MB in {SHARDS} shards, medians of {rounds}")
    for name, taken in times.items():
        against = "cp" if name in ("cp", "verify --deep") else "cp and sync"
        ratio = statistics.median(base / mine for base, mine in zip(times[against], taken, strict=True))
        rate = size / 1e6 / statistics.median(taken)
        print(f"{name:14} {statistics.median(taken):7.2f} s {rate:9,.0f} MB/s   {ratio:5.2f} of {against}")
    judged = {"merge": "cp and sync", "verify --deep": "cp"}
    return int(any(
        statistics.median(base / mine for base, mine in zip(times[against], times[name], strict=True)) < BAR
        for name, against in judged.items()
    ))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
