"""Hydra's own application mode, for what only it can do: --multirun with its sweepers and launchers, --cfg, --info."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from megawrap.errors import ConfigError, Finding

SWEEP = ("-m", "--multirun")
OPTIONS = (*SWEEP, "-c", "--cfg", "-i", "--info", "--hydra-help", "--shell-completion", "-sc")


def wanted(words: Sequence[str]) -> bool:
    """Whether an option among ``words`` belongs to Hydra's application mode."""
    return any(word.split("=", 1)[0] in OPTIONS for word in words)


def run(words: list[str]) -> int:
    """Hand over to ``hydra.main``; each job of a sweep is a launch of its own.

    The exit code is the worst of the jobs': a sweep with a failed run does not end as if all were well.

    Raises:
        ConfigError: when another verb than launch is to sweep: a user who only wants to see must not start training.
    """
    import hydra

    from megawrap.cli.verbs import DEFAULT_VERB, VERBS
    from megawrap.config.compose import register
    from megawrap.config.words import as_sweep

    if words and words[0] in VERBS:
        verb, words = words[0], words[1:]
        if verb != DEFAULT_VERB and any(word.split("=", 1)[0] in SWEEP for word in words):
            message = f"megawrap {verb}: it takes no --multirun, which starts every job of a sweep"
            raise ConfigError(Finding(id="MW008", message=message, nearest=("megawrap launch --multirun",)))
    register()
    codes: list[int] = []

    @hydra.main(config_path=None, config_name="config", version_base="1.3")
    def task(_: Any) -> int:
        codes.append(_job())
        return codes[-1]

    sys.argv = [sys.argv[0], "--config-path", "pkg://megawrap.conf", *map(as_sweep, words)]
    task()
    return max(codes, default=0)


def _job() -> int:
    from hydra.core.hydra_config import HydraConfig

    from megawrap.cli.app import main

    job = HydraConfig.get()
    overrides = [word for word in job.overrides.task if not word.startswith("run.dir=")]
    return main(["launch", *overrides, f"run.dir={job.runtime.output_dir}"])
