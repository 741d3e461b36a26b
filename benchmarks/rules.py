"""How long checking one composed configuration takes: the effective values and every rule, against compiling its
argument list.

    python benchmarks/rules.py [--rounds 200]

Interleaved in one process, over a dense and an expert model, legal and not. Prints medians in milliseconds and the
ratio. Bar: 5 ms for the rules.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from megawrap.config.compose import compose
from megawrap.megatron.compile import compile_arguments
from megawrap.megatron.effective import Effective
from megawrap.megatron.rules import RULES, check
from megawrap.plan import build

CONFIGURATIONS = {
    "llama2_7b, legal": ["model=llama2_7b", "parallel=tp2", "cluster=mi300x"],
    "llama2_7b, illegal": ["model=llama2_7b", "parallel.tp=5", "cluster=mi300x", "train.global_batch_size=100"],
    "deepseek_v3, legal": ["model=deepseek_v3", "parallel=ep8", "cluster=mi300x", "cluster.nodes=16"],
}
BAR_MS = 5.0


def milliseconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1e3


def tasks(words: list[str]) -> dict[str, Callable[[], object]]:
    composed = compose(words)
    plan = build(composed, ambient={})
    defaults, given = plan.target.surface.defaults(), plan.compiled.values()

    def rules() -> object:
        effective = Effective.of(defaults, given, plan.machine.world_size, plan.target.release.fork,
                                 plan.effective.core, plan.effective.environment, plan.machine.gpu)  # fmt: skip
        return check(effective, plan.compiled, lambda: composed.origins)

    return {"compile": lambda: compile_arguments(composed.config, plan.target, lambda: composed.origins),
            "rules": rules}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    worst = 0.0
    print(f"{len(RULES)} rules, medians of {rounds}")
    for name, words in CONFIGURATIONS.items():
        both = tasks(words)
        times: dict[str, list[float]] = {which: [] for which in both}
        for _ in range(rounds):
            for which, run in both.items():
                times[which].append(milliseconds(run))
        compiled, checked = (statistics.median(column) for column in times.values())
        worst = max(worst, checked)
        print(f"{name:20}  compile {compiled:5.2f} ms   rules {checked:5.2f} ms   ratio {checked / compiled:.2f}")
    print(f"bar: {BAR_MS} ms for the rules")
    return int(worst > BAR_MS)


if __name__ == "__main__":
    sys.exit(main())
