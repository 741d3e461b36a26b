"""Real training on this machine's CPU: parallelism, checkpoints, and the same losses as Megatron-LM's own script."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.train

EMBEDDED = ("-m", "megawrap.megatron.embedded")
# NullTokenizer adds one; 512 needs no padding, which would differ between numbers of tensor-parallel ranks.
VOCABULARY = 511
MODEL = f"""--num-layers 2 --hidden-size 64 --ffn-hidden-size 128 --num-attention-heads 4 --group-query-attention
    --num-query-groups 2 --seq-length 64 --max-position-embeddings 64 --position-embedding-type rope
    --normalization RMSNorm --swiglu --disable-bias-linear --untie-embeddings-and-output-weights
    --attention-dropout 0.0 --hidden-dropout 0.0 --tokenizer-type NullTokenizer --vocab-size {VOCABULARY}"""
CPU = """--distributed-backend gloo --transformer-impl local --use-cpu-initialization --no-masked-softmax-fusion
    --no-bias-swiglu-fusion --no-bias-dropout-fusion --no-rope-fusion --no-gradient-accumulation-fusion
    --no-persist-layer-norm"""
TRAIN = """--micro-batch-size 2 --global-batch-size 8 --lr 0.003 --min-lr 0.0003 --lr-decay-style cosine
    --lr-decay-iters 6 --split 1,0,0 --eval-iters 0 --eval-interval 1000 --log-interval 1 --num-workers 0 --manual-gc"""
ITERATION = re.compile(r"iteration +(\d+)/.*?lm loss: (\S+) .*?grad norm: (\S+)")


@dataclasses.dataclass
class Run:
    """What a training run left: ``losses`` are (iteration, loss, gradient norm) as they were printed."""

    code: int
    output: str

    @property
    def losses(self) -> list[tuple[str, ...]]:
        assert self.code == 0, self.output[-4000:]
        return [found.groups() for found in ITERATION.finditer(self.output)]


def command(words: str, processes: int = 2, program: tuple[str, ...] = EMBEDDED) -> list[str]:
    """The torchrun command of a tiny GPT."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    common = f"{MODEL} {CPU} {TRAIN}".split()
    return [*torchrun, "-m", "megawrap.megatron.cpu", *program, *common, *words.split()]


def environment() -> dict[str, str]:
    """One thread a rank; modules compiled once, not by every process of every test."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


def train(words: str, processes: int = 2, program: tuple[str, ...] = EMBEDDED) -> Run:
    """Train to the end."""
    done = subprocess.run(
        command(words, processes, program),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        env=environment(),
    )
    return Run(done.returncode, done.stdout)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A .bin/.idx pair by Megatron's own writer."""
    prefix = tmp_path_factory.mktemp("data") / "text"
    code = f"""
import numpy, sys
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
draw = numpy.random.default_rng(1)
builder = IndexedDatasetBuilder(sys.argv[1] + ".bin", dtype=numpy.uint16)
for _ in range(200):
    length = int(draw.integers(20, 90))
    builder.add_document((draw.integers({VOCABULARY}) + numpy.arange(length)) % {VOCABULARY}, [length])
builder.finalize(sys.argv[1] + ".idx")
"""
    subprocess.run([sys.executable, "-c", code, str(prefix)], check=True, timeout=120, env=environment())
    return prefix


def test_resumed_training_goes_on_with_the_same_losses(prefix: Path, tmp_path: Path):
    words = (
        f"--data-path {prefix} --data-cache-path {tmp_path / 'cache'} --bf16 --tensor-model-parallel-size 2 "
        "--sequence-parallel --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --train-iters 6"
    )
    saved = tmp_path / "checkpoints"
    whole = train(f"{words} --save {saved} --save-interval 3")
    assert [row[0] for row in whole.losses] == ["1", "2", "3", "4", "5", "6"]
    assert float(whole.losses[-1][1]) < float(whole.losses[0][1]) - 0.5
    resumed = train(f"{words} --load {saved} --ckpt-step 3")
    # Megatron does not reset its sum after the first line of a run, so the second line shows a mean of two losses.
    assert resumed.losses[::2] == whole.losses[3::2]
    assert [norm for *_, norm in resumed.losses] == [norm for *_, norm in whole.losses[3:]]


def test_two_ranks_with_sequence_parallel_train_as_one_does(tmp_path: Path):
    one = train(f"--mock-data --train-iters 6 --save {tmp_path} --save-interval 2", processes=1)
    parallel = "--tensor-model-parallel-size 2 --sequence-parallel"
    fresh = train(f"--mock-data --train-iters 1 {parallel}")
    assert float(fresh.losses[0][1]) == pytest.approx(float(one.losses[0][1]), rel=2e-6)  # the same initial weights
    two = train(f"--mock-data --train-iters 6 --load {tmp_path} --ckpt-step 2 --no-load-rng {parallel}")
    assert [row[0] for row in two.losses] == ["3", "4", "5", "6"]
    for row, other in zip(one.losses[2:], two.losses, strict=True):
        assert float(row[2]) == pytest.approx(float(other[2]), abs=2e-3)
        # Sums in another order, so not the last digits; and Megatron's second line of a run is a mean of two losses.
        if row[0] != "4":
            assert float(row[1]) == pytest.approx(float(other[1]), rel=2e-5)


def test_pipeline_parallel_trains():
    run = train("--mock-data --train-iters 4 --pipeline-model-parallel-size 2")
    assert len(run.losses) == 4
    assert float(run.losses[-1][1]) < float(run.losses[0][1])


def test_expert_parallel_trains():
    experts = "--num-experts 4 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --expert-model-parallel-size 2"
    run = train(f"--mock-data --train-iters 4 {experts} --use-distributed-optimizer --bf16")
    assert len(run.losses) == 4
    assert float(run.losses[-1][1]) < float(run.losses[0][1])


def test_losses_are_those_of_the_script_of_a_source_tree(prefix: Path, tmp_path: Path):
    tree = _source_tree("0.19")
    words = f"--data-path {prefix} --data-cache-path {tmp_path} --bf16 --use-distributed-optimizer --train-iters 4"
    assert train(words).losses == train(words, program=(str(tree / "pretrain_gpt.py"),)).losses


def test_what_only_the_script_does_is_refused():
    run = train("--mock-data --train-iters 1 --sft", processes=1)
    assert run.code == 1
    assert "the embedded entry does not do supervised fine-tuning; Megatron-LM's own pretrain_gpt.py does" in run.output


def test_the_job_ends_when_a_rank_is_killed():
    process = subprocess.Popen(
        command("--mock-data --train-iters 100000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    try:
        victim = _child_once_training(process)
        os.kill(victim, signal.SIGKILL)
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 1
    assert re.search(rf"exitcode *: -9 \(pid: {victim}\)", output)


def _child_once_training(process: subprocess.Popen[str]) -> int:
    """The id of one rank, when the first iteration has been printed."""
    assert process.stdout is not None
    for line in process.stdout:
        if ITERATION.search(line):
            break
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[-1])


def _source_tree(release: str) -> Path:
    """A Megatron-LM source tree of ``release`` among those that MEGAWRAP_CHECKOUTS names."""
    for name in filter(None, os.environ.get("MEGAWRAP_CHECKOUTS", "").split(os.pathsep)):
        info = Path(name) / "megatron" / "core" / "package_info.py"
        numbers = re.findall(r"^(?:MAJOR|MINOR) = (\d+)", info.read_text(), re.MULTILINE)
        if ".".join(numbers) == release:
            return Path(name)
    pytest.skip(f"MEGAWRAP_CHECKOUTS names no Megatron-LM source tree of {release}")
