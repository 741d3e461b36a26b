"""What a first user meets: mistakes that are answered in words, and output that goes where it is sent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from megawrap.cli import main

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("verb", ["plan", "explain", "models", "preflight"])
@pytest.mark.parametrize("option", ["-m", "--multirun"])
def test_only_launch_sweeps(capsys, monkeypatch, verb, option):
    monkeypatch.setattr("hydra.main", lambda **_: pytest.fail("handed over to Hydra, which would train"))
    assert main([verb, option, "model=llama_tiny", "parallel=tp1,tp2"]) == 2
    said = capsys.readouterr().err
    assert f"MW008  megawrap {verb}: it takes no --multirun" in said
    assert "try: megawrap launch --multirun" in said


def test_a_folder_of_ones_own_must_be_there(capsys, tmp_path):
    file = tmp_path / "file"
    file.touch()
    for verb in ("plan", "models"):
        for wrong, why in ((tmp_path / "nope", "there is no such folder"), (file, "is a file")):
            assert main([verb, *(["model=llama_tiny"] if verb == "plan" else []), "--config-dir", str(wrong)]) == 2
            assert f"error MW024  --config-dir {wrong}: {why}" in capsys.readouterr().err


def megawrap(*words: str, before: str = "", stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """A process of its own; ``before`` is Python that runs in it first."""
    code = f"{before}\nimport sys; from megawrap.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *words]
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def test_a_reader_that_is_gone_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    process = megawrap("models", stdout=writer)
    os.close(writer)
    assert process.communicate() == (None, "")
    assert process.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_that_cannot_be_written_is_one_line():
    with Path("/dev/full").open("w") as full:
        process = megawrap("models", stdout=full.fileno())
    assert process.communicate() == (None, "megawrap: the output cannot be written: No space left on device\n")
    assert process.returncode == 1


def test_an_interrupt_while_importing_is_quiet():
    """The import itself raises the signal, so no clock is involved."""
    before = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where the tests run in the background
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'megawrap.cli.render': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    process = megawrap("models", before=before)
    assert process.communicate() == ("", "")
    assert process.returncode == 130


@pytest.mark.parametrize("verb", ["rules", "models"])
def test_a_pipe_gets_unfolded_lines(capsys, monkeypatch, verb):
    monkeypatch.delenv("COLUMNS")
    assert main([verb]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) > 80
    monkeypatch.setenv("COLUMNS", "80")
    assert main([verb]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
