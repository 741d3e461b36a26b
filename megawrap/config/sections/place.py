"""Where it runs and how it starts: cluster, launcher, Megatron, run directory, preflight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from megawrap.config.field import option


@dataclass(kw_only=True, slots=True)
class Cluster:
    """The machines."""

    name: str | None = option()
    """What the plan calls the cluster."""
    device: str = option("auto", choices=("auto", "gpu", "cpu"))
    """gpu, or cpu for gloo ranks on this machine in the real Megatron-LM; auto looks which accelerators are here."""
    gpu: str | None = option()
    """GPU model, a row of the hardware table, such as mi300x."""
    nodes: int = option(1)
    """Number of machines."""
    gpus_per_node: int | None = option()
    """Ranks on each machine. Not set: as many as the machine has; on cpu as few as the layout needs."""
    nic: str | None = option(choices=("mlx5", "bnxt", "ionic", "cxi", "efa"))
    """Family of the NICs between the machines: mlx5 (NVIDIA), bnxt (Broadcom), ionic (AMD Pollara), cxi (Slingshot),
    efa (AWS). Not set: as found, where this machine is one of them."""
    socket_interface: str | None = option()
    """Network interface that the ranks meet over, as NCCL_SOCKET_IFNAME takes it. Not set: that of the default route,
    where this machine is one of several; else NCCL chooses."""
    ib_hca: str | None = option()
    """RDMA devices between the machines, as NCCL_IB_HCA takes them. Not set: NCCL takes all, unless this machine is one
    of them and has ports that are down or slower than the rest."""
    ib_gid_index: int | None = option()
    """Entry of the RDMA devices' GID table that is routed between the machines. Not set: the RoCE v2 entry with an IPv4
    address, where this machine is one of them; else NCCL chooses."""
    container: dict[str, Any] = option({})
    """What the container of the ranks has, where it cannot be seen from here: image (a name that megawrap may know), or
    versions of torch, rocm, te, flash_attn, ck, aotriton, triton; absent: it has none. Write three numbers (2.1.0)."""


@dataclass(kw_only=True, slots=True)
class Launcher:
    """How the ranks are started."""

    name: str = option("torchrun", choices=("torchrun",))
    """The program that starts the ranks."""
    python: str | None = option()
    """Python that runs the ranks; the one that runs megawrap when not set."""
    hosts: list[str] = option([])
    """Names of the machines, the first being the meeting point."""
    master_port: int = option(29500)
    """Port of the meeting point when there is more than one machine."""


@dataclass(kw_only=True, slots=True)
class Megatron:
    """Which Megatron-LM runs, and the open door to each of its arguments."""

    source: str = option("installed", choices=("installed", "checkout", "release"))
    """installed: the megatron-core package; checkout: a Megatron-LM source tree; release: a named release, for plans
    only."""
    path: str | None = option()
    """checkout: the root of the source tree."""
    release: str | None = option()
    """release: a release whose arguments ship with megawrap, such as core-0.16.1 or rocm-2026-02."""
    args: dict[str, Any] = option({})
    """Any argument of the target by its Megatron name: megatron.args.moe_z_loss_coeff=1e-3"""


@dataclass(kw_only=True, slots=True)
class Run:
    """The run directory."""

    name: str | None = option()
    """Name of the run; the model's name when not set."""
    dir: str | None = option()
    """Folder that holds everything about the run. Not set: runs/NAME/TIME."""


@dataclass(kw_only=True, slots=True)
class Preflight:
    """Bandwidth measured before training."""

    mode: str = option("off", choices=("required", "warn", "off"))
    """required: a bad result stops the launch; warn: it is shown; off: not measured."""
    min_bytes: str = option("1G")
    """Smallest message."""
    max_bytes: str = option("8G")
    """Largest message."""
    factor: int = option(2)
    """Each message is this many times as long as the one before."""
    iters: int = option(20)
    """Timed iterations of each message size."""
    timeout_seconds: int = option(60)
    """Seconds within which every rank must have come to the meeting point."""
