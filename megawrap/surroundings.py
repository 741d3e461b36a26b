"""Everything around the arguments of a plan: the facts that decide its environment, the variables of its ranks, and
what is wrong with either."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from megawrap.config.sections.place import Cluster
from megawrap.config.sections.root import Config
from megawrap.errors import Finding
from megawrap.hardware.checks import finding
from megawrap.hardware.container import KEYS, container, undeclarable, unmet
from megawrap.hardware.environment import Variable, environment
from megawrap.hardware.gemm import file_of, gemm_findings
from megawrap.hardware.lint import lint
from megawrap.hardware.machine import Machine
from megawrap.hardware.network import Network, network
from megawrap.megatron.layout import Layout
from megawrap.megatron.surface import Target
from megawrap.megatron.surface.interpreter import is_own, site_packages

BLACKWELL = 10


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """``variables`` of the ranks by name; ``findings`` without the places that keys were set at."""

    variables: dict[str, Variable]
    findings: tuple[Finding, ...]


def surround(
    config: Config,
    target: Target,
    values: Mapping[str, Any],
    layout: Layout,
    where: Machine,
    shell: Mapping[str, str],
    root: Path = Path("/"),
) -> Surroundings:
    """The surroundings of a plan. ``values`` are Megatron's arguments, defaults included; ``root`` is where the files
    of this machine are looked at."""
    cluster = config.cluster
    is_node = where.here is not None
    net = network(root) if is_node and where.device == "gpu" and (where.nodes > 1 or _names_network(cluster)) else None
    facts = {
        **_machine(where),
        **_layout(values, layout),
        **_kernels(config, target, values),
        **_network(cluster, net, where),
        **_container(config, is_node=is_node, root=root),
    }
    found = [
        *where.findings,
        *undeclarable(cluster.container),
        *unmet(facts),
        *gemm_findings(config.gemm, facts, where.processes_per_node),
        *_network_findings(cluster, net),
        *lint(config.env, shell, facts),
    ]
    return Surroundings(environment(facts, config.env, shell), tuple(found))


def _machine(where: Machine) -> dict[str, Any]:
    gpu = where.gpu
    return {
        "device": where.device,
        "vendor": where.vendor,
        "gpu": gpu.id if gpu else None,
        "gpu_name": gpu.name if gpu else None,
        "arch": gpu.arch if gpu else None,
        "blackwell": gpu is not None and gpu.vendor == "nvidia" and gpu.compute_major >= BLACKWELL,
        "nodes": where.nodes,
        "multi_node": where.nodes > 1,
    }


def _layout(values: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    overlaps = values.get("sequence_parallel") or values.get("async_tensor_model_parallel_allreduce")
    return {
        "tp": layout.tensor,
        "cp": layout.context,
        "model_parallel": layout.tensor * layout.context > 1,
        "fsdp": bool(values.get("use_torch_fsdp2") or values.get("use_megatron_fsdp")),
        "overlap_expert_parallel": bool(values.get("overlap_moe_expert_parallel_comm")),
        "one_queue_for_overlap": bool(overlaps),
    }


def _kernels(config: Config, target: Target, values: Mapping[str, Any]) -> dict[str, Any]:
    gemm, impl, backend = config.gemm, values.get("transformer_impl"), config.attention.backend
    has_argument = "--attention-backend" in target.surface
    grouped = values.get("num_experts") and values.get("moe_grouped_gemm")
    return {
        "fork": target.release.fork,
        "core": target.version or target.release.core,
        "impl": impl,
        "attention": backend or "auto",
        "attention_by_variables": backend if not has_argument and impl == "transformer_engine" else None,
        "qk_layer_scaling": bool(values.get("apply_query_key_layer_scaling")),
        "deterministic": bool(values.get("deterministic_mode")),
        "fp8": bool(values.get("fp8")),
        "fp8_recipe": values.get("fp8_recipe") if values.get("fp8") else None,
        "te_grouped_gemm": bool(
            grouped and impl == "transformer_engine" and not values.get("moe_use_legacy_grouped_gemm")
        ),
        "gemm": gemm.mode,
        "gemm_run_count": gemm.run_count,
        "gemm_algo_count": gemm.algo_count,
        "gemm_file": file_of(gemm, config.run.dir),
    }


def _container(config: Config, *, is_node: bool, root: Path) -> dict[str, Any]:
    python = config.launcher.python
    places = None if python is None or is_own(python) else tuple(map(str, site_packages(python)))
    known = container(config.cluster.container, places, on_gpu_machine=is_node, root=root).versions
    return {key: known.get(key) for key in KEYS}


def _network(cluster: Cluster, net: Network | None, where: Machine) -> dict[str, Any]:
    """The configuration's values; else what was found on this machine, when it is one of several nodes."""
    found = net if net and where.nodes > 1 else None
    interface = cluster.socket_interface or (found.interface if found else None)
    devices = _devices(found) if found and found.has_unfit_ports else None
    index = found.gid_indices[0] if found and len(found.gid_indices) == 1 else None
    return {
        "nic": cluster.nic or (net.nic if net else None),
        "has_rdma": bool(net and net.ports),
        "socket_interface": interface,
        "gloo_interface": _for_gloo(interface),
        "socket_interface_from": "cluster.socket_interface"
        if cluster.socket_interface
        else "this node's default route",
        "ib_hca": cluster.ib_hca or devices,
        "ib_hca_from": "cluster.ib_hca" if cluster.ib_hca else "this node's active ports of the usual rate",
        "ib_gid_index": index if cluster.ib_gid_index is None else cluster.ib_gid_index,
        "ib_gid_index_from": "this node's GID table" if cluster.ib_gid_index is None else "cluster.ib_gid_index",
    }


def _devices(net: Network) -> str:
    """In NCCL's words, exact: ``=mlx5_0:1,mlx5_1:1``."""
    return "=" + ",".join(f"{port.device}:{port.number}" for port in net.fast)


def _for_gloo(interface: str | None) -> str | None:
    """gloo takes names alone, where NCCL also takes ``=`` (exactly), ``^`` (not) and prefixes."""
    return None if interface is None or interface.startswith("^") else interface.removeprefix("=").partition(",")[0]


def _names_network(cluster: Cluster) -> bool:
    return bool(cluster.socket_interface or cluster.ib_hca)


def _network_findings(cluster: Cluster, net: Network | None) -> Iterator[Finding]:
    """What the configuration names and this machine, which is one of the nodes, does not have."""
    if net is None:
        return
    named = _names(cluster.socket_interface)
    if named and not any(name.startswith(one) for one in named for name in net.interfaces):
        message = f"cluster.socket_interface = {cluster.socket_interface}: this node has {', '.join(net.interfaces)}"
        nearest = (f"cluster.socket_interface={net.interface}",) if net.interface else ()
        yield finding("MW510", message, ("cluster.socket_interface",), nearest=nearest)
    for one in _names(cluster.ib_hca):
        device = one.partition(":")[0]
        ports = [port for port in net.ports if port.device.startswith(device)]
        if not any(port.is_active for port in ports):
            state = "has no active port" if ports else f"is none of this node's: {_all(net)}"
            nearest = (f"cluster.ib_hca='{_devices(net)}'",) if net.fast else ()
            yield finding(
                "MW511", f"cluster.ib_hca = {cluster.ib_hca}: {device} {state}", ("cluster.ib_hca",), nearest=nearest
            )
    if cluster.ib_gid_index is None and len(net.gid_indices) > 1:
        indices = ", ".join(f"{port.device}: {port.gid_index}" for port in net.fast)
        message = f"the RDMA ports of this node are routed by different GID indices ({indices}): NCCL is left to choose"
        yield finding("MW512", message, ("cluster.ib_gid_index",))


def _names(listed: str | None) -> list[str]:
    """The names in NCCL's list, those that are left out excepted."""
    if listed is None or listed.startswith("^"):
        return []
    return [name for name in listed.removeprefix("=").split(",") if name]


def _all(net: Network) -> str:
    return ", ".join(dict.fromkeys(port.device for port in net.ports)) or "it has no RDMA device"
