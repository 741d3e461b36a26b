"""Whether a plan can run here, and the ways on when it cannot."""

from __future__ import annotations

import importlib.util

from megawrap.errors import Finding, ResourceError
from megawrap.plan import LaunchPlan

# The wheel has megatron.training from 0.17 on, and the builder of the model that our entry relies on from 0.19 on.
FIRST_THAT_TRAINS = (0, 19)
_CHECKOUT = "megatron=checkout megatron.path=/path/to/Megatron-LM"


def require_resources(plan: LaunchPlan) -> None:
    """Nothing, when this machine can start the plan.

    Raises:
        ResourceError: otherwise, naming what is missing and the ways on.
    """
    findings = [*_machine(plan), *_megatron(plan)]
    if findings:
        raise ResourceError(findings)


def require_machine(plan: LaunchPlan) -> None:
    """Nothing, when this machine has what the ranks of the plan need.

    Raises:
        ResourceError: otherwise.
    """
    if findings := _machine(plan):
        raise ResourceError(findings)


def _machine(plan: LaunchPlan) -> list[Finding]:
    machine = plan.machine
    if machine.nodes > 1:
        message = (
            f"the plan has {machine.nodes} machines, and the launcher torchrun starts only this one: run the commands "
            "of `megawrap plan --format shell` on each machine"
        )
        return [Finding(id="MW721", keys=("cluster.nodes",), message=message, nearest=("cluster.nodes=1",))]
    if machine.device == "cpu":
        return []
    if machine.here is None:
        message = (
            "no accelerator is on this machine, so nothing here can run the plan. Ways on: cluster=cpu trains a small "
            "model on this machine's CPU; `megawrap plan --format shell` writes the commands for a machine that has "
            "accelerators"
        )
        return [Finding(id="MW720", keys=("cluster.device",), message=message, nearest=("cluster=cpu",))]
    if machine.processes_per_node > machine.here.count:
        message = f"the plan needs {machine.processes_per_node} GPUs, and this machine has {machine.here.count}"
        nearest = (f"cluster.gpus_per_node={machine.here.count}",)
        return [Finding(id="MW722", keys=("cluster.gpus_per_node",), message=message, nearest=nearest)]
    return []


def _megatron(plan: LaunchPlan) -> list[Finding]:
    target = plan.target
    if target.source == "release":
        message = f"megatron={target.release.id} is for plans only: name a source tree, or install megatron-core"
        nearest = (_CHECKOUT, "megatron=installed")
        return [Finding(id="MW723", keys=("megatron",), message=message, nearest=nearest)]
    if target.source == "checkout":
        return []
    if target.version is None or importlib.util.find_spec("torch") is None:
        message = "megatron-core and torch are not installed here: pip install 'megawrap[cpu]' (Python 3.12 or newer)"
        return [Finding(id="MW724", keys=("megatron",), message=message)]
    if plan.target_version < FIRST_THAT_TRAINS:
        message = (
            f"the wheel of megatron-core {target.version} cannot train by itself; 0.19 (Python 3.12) is the first that "
            "can. A source tree of any release can"
        )
        return [Finding(id="MW725", keys=("megatron",), message=message, nearest=(_CHECKOUT,))]
    return []
