"""The typed plan of a launch: what runs, in which order, with which arguments and environment.

A plan is data. It knows no launcher: ``launchers`` turn its steps into commands. Making one has no side effects and
needs neither a GPU nor torch.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from megawrap.catalog import heard, unfit_silence
from megawrap.config.compose import Composed
from megawrap.config.sections.place import Cluster
from megawrap.errors import ConfigError, Finding
from megawrap.estimate.parameters import total_parameters
from megawrap.hardware.environment import Variable
from megawrap.hardware.machine import Machine, machine
from megawrap.megatron.compile import Compiled, compile_arguments
from megawrap.megatron.effective import Effective
from megawrap.megatron.layout import Layout, smallest_world
from megawrap.megatron.rules import check
from megawrap.megatron.rules.registry import numbers
from megawrap.megatron.surface import Target, resolve
from megawrap.steps import Step, steps
from megawrap.surroundings import surround

__all__ = ["LaunchPlan", "Step", "build"]


@dataclasses.dataclass(frozen=True)
class LaunchPlan:
    """Everything about one launch. ``findings`` holds what is wrong or worth knowing; with an error among them the plan
    is shown, never run."""

    composed: Composed
    target: Target
    machine: Machine
    compiled: Compiled
    effective: Effective
    parameters: int | None
    variables: Mapping[str, Variable]
    steps: tuple[Step, ...]
    findings: tuple[Finding, ...]

    @property
    def layout(self) -> Layout:
        """Parallel sizes, those that follow included."""
        return self.effective.layout

    def with_findings(self, *more: Iterable[Finding]) -> LaunchPlan:
        """The plan with findings added: each with the places where its keys were set, errors before warnings, without
        the warnings that the configuration silences."""
        found = _placed((*self.findings, *itertools.chain(*more)), self.composed)
        return dataclasses.replace(self, findings=heard(found, self.composed.config.silence))

    @property
    def target_version(self) -> tuple[int, ...]:
        """Version of the target's megatron-core, as numbers; empty when it is not known."""
        return numbers(self.target.version)

    @property
    def environment(self) -> dict[str, str | None]:
        """Variable → value on every rank; ``None`` means unset."""
        return {name: variable.value for name, variable in self.variables.items()}


def build(composed: Composed, ambient: Mapping[str, str] | None = None) -> LaunchPlan:
    """Plan the launch of a configuration. ``ambient`` is the shell's environment (default: this process's).

    Raises:
        ConfigError: when no plan can be made: unknown target, unfit or conflicting arguments. What a plan can be made
            for, but Megatron would reject, is among its findings.
    """
    config = composed.config
    target = resolve(config.megatron, config.launcher.python)
    compiled = compile_arguments(config, target, lambda: composed.origins)
    defaults, given = target.surface.defaults(), compiled.values()
    values = defaults | given
    try:
        where = machine(config.cluster, smallest_world(values))
    except ConfigError as unknown:
        raise ConfigError(_placed(unknown.findings, composed)) from None
    layout = Layout.of(values, where.world_size)
    shell = os.environ if ambient is None else ambient
    around = surround(config, target, values, layout, where, shell)
    environment = {**shell, **{name: one.value for name, one in around.variables.items()}}
    effective = Effective.of(defaults, given, where.world_size, target.release.fork, core_of(target), environment,
                             where.gpu)  # fmt: skip

    made = LaunchPlan(
        composed=composed,
        target=target,
        machine=where,
        compiled=compiled,
        effective=effective,
        parameters=total_parameters(effective.values, config.model.vocab_size),
        variables=around.variables,
        steps=steps(config, target, compiled.argv(), where),
        findings=(),
    )
    broken = check(effective, compiled, lambda: composed.origins, _worlds(config.cluster, where))
    return made.with_findings(broken, around.findings, unfit_silence(config.silence))


def _worlds(cluster: Cluster, where: Machine) -> Callable[[Mapping[str, Any]], int]:
    """The world size of other arguments. GPUs are as many as they are, and looking at them again takes time; processes
    on CPU are as many as the layout needs."""
    if where.device != "cpu":
        return lambda values: where.world_size
    return lambda values: machine(cluster, smallest_world(values)).world_size


def _placed(findings: Iterable[Finding], composed: Composed) -> Iterator[Finding]:
    """The findings, with the places where their keys were set."""
    for one in findings:
        yield one if one.origin else dataclasses.replace(one, origin=composed.origins.of(*one.keys))


def core_of(target: Target) -> tuple[int, ...]:
    """The version that decides which rules hold."""
    return numbers(target.release.checks or target.version or target.release.core)
