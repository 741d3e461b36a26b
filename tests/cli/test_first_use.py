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
