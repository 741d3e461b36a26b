"""How long a plan takes, against the smallest Hydra application that composes the same groups.

    python benchmarks/plan.py [--rounds 15]

Both run as whole processes, interleaved, so that a busy machine slows both alike. Prints median seconds, peak memory
and the ratios of their medians. Bars: at most 1.5 for each.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OVERRIDES = ["model=llama2_7b", "parallel=tp2"]
SMALLEST = """
import hydra
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

ConfigStore.instance().store(name="schema", node={})
OmegaConf.register_new_resolver("more_than_one", lambda count: int(count) > 1)
OmegaConf.register_new_resolver("package_file", lambda name: name)

@hydra.main(config_path=None, config_name="config", version_base="1.3")
def main(config):
    print(OmegaConf.to_yaml(config, resolve=True))

main()
"""
BAR = 1.5


def measure(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall-clock seconds and peak memory (MB) of a command."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, command
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        smallest = folder / "smallest.py"
        smallest.write_text(SMALLEST)
        commands = {
            "megawrap plan": [sys.executable, "-m", "megawrap", "plan", *OVERRIDES],
            "smallest app": [sys.executable, str(smallest), "--config-path", "pkg://megawrap.conf", *OVERRIDES],
        }
        runs: dict[str, list[tuple[float, float]]] = {which: [] for which in commands}
        for command in commands.values():
            measure(command, folder)  # fills the caches
        for _ in range(rounds):
            for which, command in commands.items():
                runs[which].append(measure(command, folder))
    medians = {which: [statistics.median(column) for column in zip(*rows, strict=True)] for which, rows in runs.items()}
    for which, (seconds, memory) in medians.items():
        print(f"{which:14}  {seconds:6.3f} s  {memory:6.1f} MB   (medians of {rounds})")
    ratios = [ours / theirs for ours, theirs in zip(*medians.values(), strict=True)]
    print(f"ratio           {ratios[0]:6.2f}    {ratios[1]:6.2f}      (bar: {BAR} each)")
    return int(max(ratios) > BAR)


if __name__ == "__main__":
    sys.exit(main())
