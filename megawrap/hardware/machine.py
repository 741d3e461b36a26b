"""Where a plan runs: the machines of the configuration, completed by what is found on this one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from megawrap.config.sections.place import Cluster
from megawrap.errors import Finding
from megawrap.hardware.checks import finding
from megawrap.hardware.detect import Detected, ask_tools, detect
from megawrap.hardware.table import Gpu, gpu

USUAL_GPUS_PER_NODE = 8


@dataclasses.dataclass(frozen=True)
class Machine:
    """``nodes`` machines with ``processes_per_node`` ranks each. ``here`` is what this machine has; ``is_assumed`` says
    that the number of GPUs is a guess because neither the configuration nor this machine tells. ``findings`` is what
    was noticed while looking."""

    device: str
    nodes: int
    processes_per_node: int
    gpu: Gpu | None
    vendor: str | None
    here: Detected | None
    is_assumed: bool
    findings: tuple[Finding, ...] = ()

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.nodes * self.processes_per_node

    @property
    def name(self) -> str:
        """For people: ``2 x 8 AMD Instinct MI300X``."""
        kind = "CPU processes" if self.device == "cpu" else self.gpu.name if self.gpu else "GPUs"
        nodes = f"{self.nodes} x " if self.nodes > 1 else ""
        return f"{nodes}{self.processes_per_node} {kind}" + (" (assumed)" if self.is_assumed else "")


def machine(cluster: Cluster, smallest_world: int) -> Machine:
    """The machine of ``cluster``; ``smallest_world`` is the fewest ranks that the layout can have.

    Raises:
        ConfigError: when the GPU is unknown.
    """
    if cluster.device == "cpu":
        per_node = cluster.gpus_per_node or -(-smallest_world // max(1, cluster.nodes))
        return Machine("cpu", cluster.nodes, per_node, None, None, None, False)
    here = detect()
    problems: tuple[str, ...] = ()
    if here is None and cluster.gpu is None:
        # A container may hide the drivers' files and still have their tools; a named GPU needs neither.
        here, problems = ask_tools()
    kind = gpu(cluster.gpu) if cluster.gpu else here.gpu if here else None
    vendor = kind.vendor if kind else here.vendor if here else None
    count = cluster.gpus_per_node or (here.count if here and not cluster.gpu else None)
    found = () if cluster.gpu else tuple(_noticed(here, problems))
    return Machine("gpu", cluster.nodes, count or USUAL_GPUS_PER_NODE, kind, vendor, here, count is None, found)


def _noticed(here: Detected | None, problems: tuple[str, ...]) -> Iterator[Finding]:
    if here is None:
        for problem in problems:
            yield finding("MW542", f"no accelerator was found, and {problem}", ("cluster.device",))
        return
    if here.others:
        used = here.gpu.name if here.gpu else "a GPU that is not known"
        message = (
            f"this machine has GPUs of several kinds; planned for {here.count} x {used}, not {', '.join(here.others)}"
        )
        yield finding("MW540", message, ("cluster.gpu",))
    if here.gpu is None:
        message = f"{here.said_by} tells of {here.count} GPUs of {here.vendor}, of a kind that megawrap does not know"
        yield finding("MW543", message, ("cluster.gpu",))
    if here.partitions > 1:
        message = (
            f"each GPU of this machine is cut into {here.partitions} partitions of {here.gpu.memory_gb:.0f} GB; a rank "
            "has one of them. Whole GPUs: amd-smi set --compute-partition SPX"
            if here.gpu
            else f"each GPU of this machine is cut into {here.partitions} partitions"
        )
        yield finding("MW541", message, ("cluster.gpu",))
