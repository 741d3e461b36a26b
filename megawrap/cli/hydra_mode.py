"""Hydra's own application mode, for what only it can do: --multirun with its sweepers and launchers, --cfg, --info."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

OPTIONS = ("-m", "--multirun", "-c", "--cfg", "-i", "--info", "--hydra-help", "--shell-completion", "-sc")


def wanted(words: Sequence[str]) -> bool:
    """Whether an option among ``words`` belongs to Hydra's application mode."""
    return any(word.split("=", 1)[0] in OPTIONS for word in words)


def run(words: list[str]) -> int:
    """Hand over to ``hydra.main``; each job of a sweep is a launch of its own.

    The exit code is the worst of the jobs': a sweep with a failed run does not end as if all were well.
    """
    import hydra

    from megawrap.cli.verbs import VERBS
    from megawrap.config.compose import register

    if words and words[0] in VERBS:
        words = words[1:]
    register()
    codes: list[int] = []

    @hydra.main(config_path=None, config_name="config", version_base="1.3")
    def task(_: Any) -> int:
        codes.append(_job())
        return codes[-1]

    sys.argv = [sys.argv[0], "--config-path", "pkg://megawrap.conf", *words]
    task()
    return max(codes, default=0)


def _job() -> int:
    from hydra.core.hydra_config import HydraConfig

    from megawrap.cli.app import main

    job = HydraConfig.get()
    overrides = [word for word in job.overrides.task if not word.startswith("run.dir=")]
    return main(["launch", *overrides, f"run.dir={job.runtime.output_dir}"])
