"""How fast text becomes token files, and in how much memory, against Megatron-LM's own tools.

    python benchmarks/preprocess.py corpus.jsonl --tokenizer-type Llama2Tokenizer --tokenizer-model tokenizer.model \
        [--megatron CHECKOUT] [--rounds 3] [--slow-rounds 1] [--tool-workers 2] [--ten]

All commands run as whole processes, interleaved, with 1 and with 2 workers. Prints medians of wall-clock and CPU
seconds and of the peak of the memory of all their processes together (RSS, so that shared pages count in each), and
whether the files are the same. ``--ten`` measures memory with ten times the corpus, too. Without ``--megatron`` the
speed is compared with figures that were recorded elsewhere (megatron_preprocess.json), which says little.
"""

from __future__ import annotations

import argparse
import dataclasses
import filecmp
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
RECORDED = json.loads(Path(__file__).with_name("megatron_preprocess.json").read_text())
TOOLS = ("preprocess_data.py", "preprocess_data_fast.py")
FAST = ("HuggingFaceTokenizer", "GPT2BPETokenizer")
LIMIT = 1800


@dataclasses.dataclass(frozen=True)
class Run:
    """Seconds by the clock, seconds of CPU, peak memory in MB."""

    wall: float
    cpu: float
    memory: float


class Peak(threading.Thread):
    """Watches how much memory a process and its descendants take together."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.bytes = 0
        self.done = threading.Event()
        self._root = psutil.Process(pid)

    def run(self) -> None:
        while not self.done.wait(0.05):
            self.bytes = max(self.bytes, self._now())

    def _now(self) -> int:
        total = 0
        try:
            for process in (self._root, *self._root.children(recursive=True)):
                total += process.memory_info().rss
        except psutil.NoSuchProcess:
            pass  # it has ended since; the next look sees the others
        return total


def measure(command: list[str], folder: Path, environment: dict[str, str]) -> Run:
    """Run a command to its end."""
    began = time.perf_counter()
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment})
        peak = Peak(child.pid)
        peak.start()
        # Some of Megatron's failures make it wait for ever.
        deadline = threading.Timer(LIMIT, child.kill)
        deadline.start()
        _, status, usage = os.wait4(child.pid, 0)
        deadline.cancel()
        peak.done.set()
    if status:
        sys.exit(f"{' '.join(command)} failed:\n{(folder / 'log').read_text(errors='replace')[-2000:]}")
    return Run(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, peak.bytes / 1e6)


def commands(options: argparse.Namespace, words: list[str], folder: Path) -> dict[str, tuple[list[str], dict]]:
    """Name to words and environment; ours first."""
    ours = [sys.executable, "-m", "megawrap.preprocess"]
    found = {}
    for workers in (1, 2):
        prefix = ["--output-prefix", str(folder / f"ours{workers}"), "--workers", str(workers)]
        found[f"megawrap, {workers} workers"] = ([*ours, *words, *prefix], {"PYTHONPATH": str(ROOT)})
    for tool in TOOLS if options.megatron else ():
        if tool == TOOLS[1] and options.tokenizer_type not in FAST:
            continue
        for workers in options.tool_workers:
            prefix = ["--output-prefix", str(folder / f"{tool}{workers}")]
            # The quick tool has threads instead, and takes their number from the environment.
            more = ["--use-gigatoken"] if tool == TOOLS[1] else ["--workers", str(workers)]
            script = str(options.megatron / "tools" / tool)
            path = {"PYTHONPATH": str(options.megatron), "RAYON_NUM_THREADS": str(workers)}
            found[f"{tool}, {workers} workers"] = ([sys.executable, script, *words, *prefix, *more], path)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument(
        "--megatron", type=lambda word: Path(word).absolute(), help="a Megatron-LM checkout whose tools run here"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow-rounds", type=int, help=f"rounds that {TOOLS[0]} takes part in (all)")
    parser.add_argument("--tool-workers", type=int, nargs="+", default=[1, 2], help="workers of Megatron's tools (1 2)")
    parser.add_argument("--ten", action="store_true", help="memory with ten times the corpus, too")
    parser.add_argument("--tokenizer-type", required=True)
    options, tokenizer = parser.parse_known_args()
    corpus = options.corpus.absolute()
    words = ["--input", str(corpus), "--append-eod", "--tokenizer-type", options.tokenizer_type, *tokenizer]
    with tempfile.TemporaryDirectory(dir=corpus.parent) as name:
        folder = Path(name)
        compared = commands(options, words, folder)
        runs: dict[str, list[Run]] = {which: [] for which in compared}
        for turn in range(options.rounds):
            for which, (command, environment) in compared.items():
                if not which.startswith(TOOLS[0]) or options.slow_rounds is None or turn < options.slow_rounds:
                    runs[which].append(measure(command, folder, environment))
        report(runs, corpus.stat().st_size / 1e6, options.tokenizer_type)
        last = options.tool_workers[-1]
        for tool in TOOLS:
            if (folder / f"{tool}{last}_text_document.bin").exists():
                pairs = [(f"ours2_text_document{end}", f"{tool}{last}_text_document{end}") for end in (".bin", ".idx")]
                same = all(filecmp.cmp(folder / ours, folder / theirs, False) for ours, theirs in pairs)
                print(f"files of {tool}: {'identical' if same else 'DIFFERENT'}")
        if options.ten:
            ten_times(folder, corpus, compared["megawrap, 2 workers"])
    return 0


def report(runs: dict[str, list[Run]], megabytes: float, kind: str) -> None:
    """Medians, and how often as fast we are."""
    medians = {}
    for which, of_which in runs.items():
        columns = zip(*map(dataclasses.astuple, of_which), strict=True)
        medians[which] = Run(*(statistics.median(column) for column in columns))
        row = medians[which]
        rate = f"{megabytes / row.wall:6.1f} MB/s"
        figures = f"{row.wall:7.2f} s  {rate}  {row.cpu:7.2f} s of CPU  {row.memory:6.0f} MB"
        print(f"{which:36} {figures}  (medians of {len(of_which)})")
    one, two = (medians[f"megawrap, {workers} workers"] for workers in (1, 2))
    print(f"2 workers against 1: {one.wall / two.wall:.2f} times as fast")
    for which, row in medians.items():
        if not which.startswith("megawrap"):
            ours = medians[f"megawrap, {which.split(', ')[1]}"]
            print(f"against {which}: {row.wall / ours.wall:.1f} times as fast, {row.cpu / ours.cpu:.1f} in CPU")
    if len(medians) == 2:
        for tool, seconds in RECORDED["seconds"].get(kind, {}).items():
            rate = RECORDED["megabytes"] / seconds
            print(f"against {tool} as recorded: {megabytes / two.wall / rate:.1f} times as fast")


def ten_times(folder: Path, corpus: Path, ours: tuple[list[str], dict]) -> None:
    """Memory with ten times the input."""
    large = folder / "ten.jsonl"
    with large.open("wb") as target:
        for _ in range(10):
            with corpus.open("rb") as source:
                shutil.copyfileobj(source, target)
    words = [str(large) if word == str(corpus) else word for word in ours[0]]
    run = measure(words, folder, ours[1])
    print(f"ten times the corpus: {run.wall:.1f} s, {run.memory:.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
