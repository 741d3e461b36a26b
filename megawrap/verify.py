"""A second opinion on a plan: the target Megatron itself, asked without a GPU (``plan --verify``)."""

from __future__ import annotations

import sys

from megawrap.catalog import finding
from megawrap.errors import Finding, MegawrapError
from megawrap.megatron.oracle import Oracle, Verdict
from megawrap.plan import LaunchPlan


def verified(plan: LaunchPlan) -> LaunchPlan:
    """The plan, with what its target says of the arguments: an error where it rejects them, a warning where it cannot
    be asked."""
    if plan.target.source == "release" or plan.target.version is None:
        message = f"{plan.target.name} is not here to be asked: megatron=checkout megatron.path=TREE, or installed"
        return plan.with_findings([finding("MW023", message, ("megatron.source",))])
    try:
        with Oracle(plan.target.path, plan.composed.config.launcher.python or sys.executable) as oracle:
            verdict = oracle.ask(plan.compiled.argv(), plan.layout.world_size, plan.environment)
    except MegawrapError as failed:
        return plan.with_findings(finding("MW023", one.message, one.keys) for one in failed.findings)
    return plan if verdict.is_accepted else plan.with_findings([_rejection(plan, verdict)])


def _rejection(plan: LaunchPlan, verdict: Verdict) -> Finding:
    said = verdict.message or verdict.line
    message = f"{plan.target.name} rejects it in {verdict.stage} ({verdict.where}): {said}"
    return finding("MW022", message, ("megatron.source",))
