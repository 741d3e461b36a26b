"""What several verbs do alike."""

from __future__ import annotations

import argparse

from megawrap.config.compose import Composed, compose
from megawrap.errors import ConfigError, Finding, errors
from megawrap.guards import guard
from megawrap.plan import LaunchPlan, build


def composed(options: argparse.Namespace) -> Composed:
    """The configuration that the words of a command name."""
    return compose(options.words, config_dir=options.config_dir, config_name=options.config_name or _primary(options))


def _primary(options: argparse.Namespace) -> str:
    """The primary configuration where none is named: a folder that import wrote has its own."""
    if options.config_dir is None:
        return "config"
    from megawrap.importing.writing import primary_in

    return primary_in(options.config_dir)


def planned(options: argparse.Namespace) -> LaunchPlan:
    """The plan of a command.

    Raises:
        ConfigError: when there is no model, or no plan can be made.
    """
    config = composed(options)
    if config.config.model.num_layers is None and "num_layers" not in config.config.megatron.args:
        raise ConfigError(no_model())
    return guard(build(config))


def no_model() -> Finding:
    """There is nothing to train."""
    message = "no model is chosen: model=NAME (`megawrap models` lists them), or set its dimensions"
    return Finding(id="MW009", keys=("model",), message=message, nearest=("model=llama2_7b", "model=llama3_8b"))


def refuse_errors(plan: LaunchPlan) -> None:
    """Nothing, when the plan has no error.

    Raises:
        ConfigError: with all its findings otherwise.
    """
    if errors(plan.findings):
        raise ConfigError(plan.findings)
