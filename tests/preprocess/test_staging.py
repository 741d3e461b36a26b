"""Whole or nothing: the folder beside the output, its lock, and moves that can be cut off at any point."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from preprocess_helpers import ROOT, names

from megawrap.errors import ConfigError
from megawrap.preprocess.staging import Staging, unwritable

SUFFIXES = (".bin", ".idx", ".json")


class Died(BaseException):
    """The end of a process, as far as Python can play it."""


def stage(staging: Staging, mark: str) -> list[tuple[Path, Path]]:
    moves = []
    for suffix in SUFFIXES:
        made = staging.new(f"text{suffix}")
        made.write_text(mark)
        moves.append((made, Path(f"{staging.prefix}_text_document{suffix}")))
    return moves


def test_outputs_appear_when_they_are_published(tmp_path):
    prefix = str(tmp_path / "deep" / "folder" / "out")
    with Staging(prefix) as staging:
        moves = stage(staging, "new")
        assert names(tmp_path / "deep" / "folder") == [".out.partial"]
        staging.publish(moves)
    files = ["out_text_document.bin", "out_text_document.idx", "out_text_document.json"]
    assert names(tmp_path / "deep" / "folder") == files


def test_what_is_not_published_vanishes(tmp_path):
    with pytest.raises(KeyboardInterrupt), Staging(str(tmp_path / "out")) as staging:
        stage(staging, "new")
        raise KeyboardInterrupt
    assert names(tmp_path) == []


@pytest.mark.parametrize("operations", range(7))
def test_cut_off_anywhere_there_is_no_index_without_its_data(tmp_path, monkeypatch, operations):
    """An earlier output is replaced, and the process dies after so many file operations."""
    prefix = str(tmp_path / "out")
    with Staging(prefix) as staging:
        staging.publish(stage(staging, "old"))
    left = iter(range(operations))

    def mortal(operation):
        def wrapper(*args, **kwargs):
            if next(left, None) is None:
                raise Died
            return operation(*args, **kwargs)

        return wrapper

    with contextlib.suppress(Died), Staging(prefix) as staging:
        moves = stage(staging, "new")
        monkeypatch.setattr(Path, "unlink", mortal(Path.unlink))
        monkeypatch.setattr(Path, "rename", mortal(Path.rename))
        staging.publish(moves)
    monkeypatch.undo()
    data, index, manifest = (
        path.read_text() if path.exists() else None
        for path in (Path(f"{prefix}_text_document{end}") for end in SUFFIXES)
    )
    assert index in (None, data)
    assert manifest in (None, index)
    assert (data == "new") == (operations > 3)


def test_two_runs_do_not_write_the_same_output(tmp_path):
    prefix = str(tmp_path / "out")
    with Staging(prefix) as staging:
        kept = staging.new("text.bin")
        with pytest.raises(ConfigError) as refused, Staging(prefix):
            pass
        assert str(refused.value) == f"--output-prefix {prefix}: another run is writing there now"
        assert kept.exists(), "the first run goes on undisturbed"
        with Staging(str(tmp_path / "other")):
            pass
    with Staging(prefix):
        pass


def test_what_a_killed_run_left_is_used_up(tmp_path):
    prefix = str(tmp_path / "out")
    code = "import os, sys; from megawrap.preprocess.staging import Staging; s = Staging(sys.argv[1]); "
    code += "s.new('text.bin').write_text('stale'); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code, prefix], check=False, cwd=ROOT, timeout=60).returncode == -9
    assert names(tmp_path) == [".out.partial"]
    with Staging(prefix) as staging:
        assert names(staging.folder) == ["lock"]
    assert names(tmp_path) == []


def test_a_place_that_cannot_be_written_is_told_beforehand(tmp_path):
    (tmp_path / "file").touch()
    problem = unwritable(str(tmp_path / "file" / "out"))
    assert problem is not None
    assert problem.message == f"--output-prefix {tmp_path}/file/out: {tmp_path}/file is not a folder"
    assert unwritable(str(tmp_path / "not" / "there" / "yet" / "out")) is None
    assert names(tmp_path) == ["file"], "looking makes nothing"


def test_a_folder_without_permission_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everywhere
    problem = unwritable(str(tmp_path / "out"))
    assert problem is not None
    assert problem.message == f"--output-prefix {tmp_path}/out: {tmp_path} cannot be written to"


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / ".out.partial").write_text("a file in the way")
    with pytest.raises(ConfigError) as refused, Staging(str(tmp_path / "out")):
        pass
    assert str(refused.value) == f"--output-prefix {tmp_path}/out: File exists"
