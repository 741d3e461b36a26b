"""The verdict on a measured network: what the measurement of a plan is held against."""

from __future__ import annotations

from pathlib import Path

from megawrap.errors import PreflightError, errors
from megawrap.plan import LaunchPlan
from megawrap.rccl_tests.expectations import expectation
from megawrap.rccl_tests.records import read_measurement
from megawrap.rccl_tests.verdict import Verdict, judge


def judged(plan: LaunchPlan, result: Path, *, stops: bool) -> Verdict:
    """Judge the measurement in ``result`` for the machine of ``plan``.

    Raises:
        PreflightError: when the network is not fit and ``stops``.
    """
    machine = plan.machine
    mark = expectation(machine.gpu.id, machine.processes_per_node, machine.nodes) if machine.gpu else None
    verdict = judge(read_measurement(result), mark)
    if stops and errors(verdict.findings):
        raise PreflightError(verdict.findings)
    return verdict
