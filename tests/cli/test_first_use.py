"""What a first user meets: mistakes that are answered in words, and output that goes where it is sent."""

from __future__ import annotations

import pytest

from megawrap.cli import main


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
