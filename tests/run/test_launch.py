"""Real launches: two gloo ranks in Megatron-LM's own training loop, on this machine's CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.train

MARK = "MEGAWRAP_LAUNCH_TEST"
TINY = ["model=llama_tiny", "parallel=tp2", "cluster=cpu", "data=sample", "run.dir=run"]
LONG = [*TINY, "preflight=off", "train.train_iters=100000", "checkpoint.save=null"]
PATIENCE = 240


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, MARK: str(folder)}
    command = [sys.executable, "-m", "megawrap", *words]
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def left_behind(folder: Path) -> list[psutil.Process]:
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get(MARK) == str(folder) and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def metrics(folder: Path) -> list[dict]:
    file = folder / "run/metrics.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def wait_for_iteration(folder: Path, number: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if any(row["iteration"] >= number for row in metrics(folder)):
            return
        time.sleep(0.2)
    logs = "\n".join(log.read_text()[-2000:] for log in folder.glob("run/logs/train/*.log"))
    pytest.fail(f"iteration {number} was not reached\n{logs}")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """The run of `make demo`, once."""
    folder = tmp_path_factory.mktemp("demo")
    child = start(folder, *TINY, "--json")
    out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, err
    return folder, json.loads(out)


def test_the_loss_falls_and_the_run_directory_holds_everything(demo):
    folder, answer = demo
    assert answer["exit_code"] == 0
    assert answer["iterations"] == 30
    assert answer["last_loss"] < answer["first_loss"] - 1
    assert answer["tokens_per_second"] > 0
    rows = metrics(folder)
    assert [row["iteration"] for row in rows] == list(range(1, 31))
    run = folder / "run"
    assert (run / "checkpoints/latest_checkpointed_iteration.txt").read_text().strip() == "30"
    assert (run / "logs/train/rank0.log").stat().st_size > 0
    assert (run / "logs/train/rank1.log").stat().st_size > 0
    assert json.loads((run / "result.json").read_text())["exit_code"] == 0
    records = json.loads((run / "preflight.json").read_text())["records"]
    assert {(row["collective"], row["ranks"], row["wrong"]) for row in records} == {("all_reduce", 2, 0)}
    assert all(row["busbw"] > 0 for row in records)
    assert not (run / "torchrun/train").exists()
    assert left_behind(folder) == []


def test_the_same_run_twice_gives_the_same_losses(demo, tmp_path):
    """Ten steps again, with the schedule of the thirty."""
    words = [*TINY, "preflight=off", "train.train_iters=10", "schedule.lr_decay_iters=30", "checkpoint.save=null"]
    child = start(tmp_path, *words, "--json")
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, err
    again = [(row["lm_loss"], row["grad_norm"]) for row in metrics(tmp_path)]
    assert again == [(row["lm_loss"], row["grad_norm"]) for row in metrics(demo[0])][:10]


def test_a_killed_rank_ends_the_run_and_is_named(tmp_path):
    child = start(tmp_path, *LONG)
    wait_for_iteration(tmp_path, 2)
    ranks = {one.environ()["RANK"]: one for one in left_behind(tmp_path) if "LOCAL_RANK" in one.environ()}
    ranks["1"].kill()
    killed = time.monotonic()
    _, err = child.communicate(timeout=PATIENCE)
    assert time.monotonic() - killed < 30
    assert child.returncode == 1
    assert "error MW710  the step train failed: rank 1 on " in err
    assert "was ended by SIGKILL" in err
    assert "Traceback" not in err.split("MW710")[0]
    assert json.loads((tmp_path / "run/result.json").read_text())["exit_code"] == 1
    assert left_behind(tmp_path) == []


def test_ctrl_c(tmp_path):
    child = start(tmp_path, *LONG)
    wait_for_iteration(tmp_path, 1)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, err
    assert "interrupted; no process is left behind" in err
    assert left_behind(tmp_path) == []
    assert json.loads((tmp_path / "run/result.json").read_text())["reason"] == "interrupted by SIGINT"


def test_what_megatron_dies_of_shows_its_last_words(tmp_path):
    """What our rules do not know yet still ends with Megatron's own message, the rank, and exit code 1."""
    for end in ("bin", "idx"):
        (tmp_path / f"junk.{end}").write_bytes(b"junk")
    words = [*(word for word in LONG if not word.startswith("data=")), "data=prefix", f"data.prefix={tmp_path}/junk"]
    child = start(tmp_path, *words)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 1, err
    assert "the step train failed: rank " in err
    assert "Error" in err


def test_a_source_tree_runs_its_own_entry_to_the_same_losses(tmp_path):
    """The checkout's pretrain_gpt.py under the same stand-in; checkouts come from MEGAWRAP_CHECKOUTS."""
    trees = [Path(name) for name in os.environ.get("MEGAWRAP_CHECKOUTS", "").split(":") if name]
    if not trees:
        pytest.skip("MEGAWRAP_CHECKOUTS names no Megatron-LM source tree")
    losses = []
    for index, tree in enumerate([None, *trees]):
        folder = tmp_path / str(index)
        folder.mkdir()
        which = ["megatron=checkout", f"megatron.path={tree}"] if tree else []
        child = start(folder, *TINY, "preflight=off", "train.train_iters=5", *which, "--json")
        out, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == 0, f"{tree}: {out}{err}"
        losses.append([row["lm_loss"] for row in metrics(folder)])
    assert len(losses[0]) == 5
    assert all(other[-1] == pytest.approx(losses[0][-1], abs=1e-6) for other in losses)


def test_a_preflight_that_fails_stops_the_launch_or_is_a_warning(tmp_path):
    """A size that does not exist makes the worker refuse; `warn` goes on to train, `required` ends with exit code 3."""
    short = ["train.train_iters=4", "schedule.lr_warmup_iters=1", "checkpoint.save=null", "preflight.min_bytes=5X"]
    (tmp_path / "required").mkdir()
    child = start(tmp_path / "required", *TINY, *short, "--json")
    out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 3, err
    assert [finding["id"] for finding in json.loads(out)["findings"]] == ["MW402"]
    (tmp_path / "warn").mkdir()
    child = start(tmp_path / "warn", *TINY, *short, "preflight.mode=warn", "--json")
    out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, err
    answer = json.loads(out)
    assert [(finding["id"], finding["severity"]) for finding in answer["findings"]] == [("MW402", "warning")]
    assert answer["iterations"] == 4
