"""Way "parser": a process of the Python that will run the target tells what the target's own parser accepts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from megawrap.megatron.cpu.packages import GPU_ONLY

_PROBE = Path(__file__).with_name("probe.py")
# Importing torch and Megatron takes 5 to 15 s; a cold network file system several times as long.
TIMEOUT_SECONDS = 180.0
# To import Megatron on a node without a GPU, and beside a run on one with.
_NO_DEVICE = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}


class NoAnswer(Exception):
    """The target's parser could not be asked; the message says why."""


def ask(root: Path, python: str | None = None, *, timeout_seconds: float = TIMEOUT_SECONDS) -> list[dict[str, Any]]:
    """Rows, as in ``arguments.json``, of the parser of the Megatron-LM below ``root``. ``python`` is the interpreter to
    ask with; this one when not given. Nothing is written into the tree.

    Raises:
        NoAnswer: when its imports fail there, or take longer than ``timeout_seconds``.
    """
    words = [python or sys.executable, "-B", str(_PROBE), str(root), *GPU_ONLY]
    try:
        done = subprocess.run(
            words,
            env={**os.environ, **_NO_DEVICE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"no answer within {timeout_seconds:g} s") from None
    except OSError as problem:
        raise NoAnswer(f"{words[0]}: {problem.strerror}") from None
    if done.returncode != 0:
        raise NoAnswer(_last_line(done.stderr) or f"exit code {done.returncode}")
    return _rows(done.stdout)


def _rows(answer: bytes) -> list[dict[str, Any]]:
    try:
        rows = json.loads(answer)
    except ValueError:
        raise NoAnswer("the answer is not JSON") from None
    if not rows:
        raise NoAnswer("its parser has no arguments")
    found: list[dict[str, Any]] = rows
    return found


def _last_line(text: bytes) -> str:
    lines = [line.strip() for line in text.decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")
