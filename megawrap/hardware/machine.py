"""Where a plan runs: the machines of the configuration, completed by what is found on this one."""

from __future__ import annotations

import dataclasses

from megawrap.config.sections.place import Cluster
from megawrap.hardware.detect import Detected, detect
from megawrap.hardware.table import Gpu, gpu

USUAL_GPUS_PER_NODE = 8


@dataclasses.dataclass(frozen=True)
class Machine:
    """``nodes`` machines with ``processes_per_node`` ranks each. ``here`` is what this machine has; ``is_assumed`` says
    that the number of GPUs is a guess because neither the configuration nor this machine tells."""

    device: str
    nodes: int
    processes_per_node: int
    gpu: Gpu | None
    vendor: str | None
    here: Detected | None
    is_assumed: bool

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
        per_node = cluster.gpus_per_node or -(-smallest_world // cluster.nodes)
        return Machine("cpu", cluster.nodes, per_node, None, None, None, False)
    here = detect()
    kind = gpu(cluster.gpu) if cluster.gpu else here.gpu if here else None
    vendor = kind.vendor if kind else here.vendor if here else None
    count = cluster.gpus_per_node or (here.count if here and not cluster.gpu else None)
    return Machine("gpu", cluster.nodes, count or USUAL_GPUS_PER_NODE, kind, vendor, here, count is None)
