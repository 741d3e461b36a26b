"""One child with its descendants: output, exit code, signals, and that none is ever left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from megawrap.run import process

MARK = "MEGAWRAP_TEST_MARK"
# A child with a child of its own in another session, as torchrun starts its ranks; both ignore SIGTERM when asked.
FAMILY = """
import os, signal, subprocess, sys, time
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "inner" not in sys.argv:
    inner = subprocess.Popen([sys.executable, __file__, "inner", *sys.argv[1:]], start_new_session=True)
    print("started", inner.pid, flush=True)
if "leave" in sys.argv and "inner" not in sys.argv:
    sys.exit(3)
time.sleep(600)
"""


@pytest.fixture
def family(tmp_path: Path) -> Path:
    script = tmp_path / "family.py"
    script.write_text(FAMILY)
    return script


def marked() -> list[int]:
    """Processes that carry the mark of these tests."""
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get(MARK) == str(os.getpid()):
                found.append(one.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def run(*argv: str, on_line=lambda line: None, grace: float = 5.0) -> int:
    return process.run(argv, {MARK: str(os.getpid())}, on_line, grace_seconds=grace)


def test_lines_and_exit_code():
    lines: list[str] = []
    code = run(
        sys.executable, "-c", "import sys; print('a'); sys.stderr.write('b\\n'); sys.exit(7)", on_line=lines.append
    )
    assert code == 7
    assert sorted(lines) == ["a", "b"]


def test_a_signal_that_ended_the_child_is_negative():
    assert run(sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)") == -9


def test_none_in_the_environment_unsets(monkeypatch):
    monkeypatch.setenv("MEGAWRAP_GONE", "1")
    lines: list[str] = []
    code = "import os; print(os.environ.get('MEGAWRAP_GONE'))"
    process.run([sys.executable, "-c", code], {"MEGAWRAP_GONE": None}, lines.append, grace_seconds=1)
    assert lines == ["None"]


def test_orphans_in_a_session_of_their_own_are_ended(family):
    assert run(sys.executable, str(family), "leave") == 3
    assert marked() == []


def test_a_program_that_does_not_exist_is_an_exit_code_and_no_hang():
    assert run("/no/such/program") != 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("deaf", [[], ["deaf"]])
def test_signals_are_passed_on_and_nothing_is_left(family, number, deaf):
    def on_line(line: str) -> None:
        if line.startswith("started"):
            os.kill(os.getpid(), number)

    with pytest.raises(process.Interrupted) as caught:
        run(sys.executable, str(family), *deaf, on_line=on_line, grace=1.0)
    assert caught.value.signal == number
    assert marked() == []


def test_nothing_outlives_us_even_when_we_are_killed(family, tmp_path):
    """SIGKILL cannot be caught: the tether ends the child."""
    code = textwrap.dedent(f"""
        from megawrap.run import process
        process.run([{sys.executable!r}, "-c", "import time; print('up', flush=True); time.sleep(600)"], {{}},
                    lambda line: print(line, flush=True), grace_seconds=1)
    """)
    environment = {**os.environ, MARK: str(os.getpid())}
    outer = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
    assert outer.stdout is not None
    assert outer.stdout.readline() == "up\n"
    assert len(marked()) == 2
    outer.kill()
    outer.wait()
    deadline = time.monotonic() + 30
    while marked() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert marked() == []
