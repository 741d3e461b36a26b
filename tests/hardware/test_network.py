"""The network of a node, from a fake sysfs, and the variables that follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from megawrap.config.compose import compose
from megawrap.hardware.detect import Detected
from megawrap.hardware.network import network
from megawrap.hardware.table import gpu
from megawrap.plan import build

HEAD = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
V4, LINK_LOCAL = "0000:0000:0000:0000:0000:ffff:0a00:0001", "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"


def routes(root: Path, *rows: tuple[str, str, int]) -> None:
    """Routes: interface, destination in hexadecimal, metric."""
    for name in {row[0] for row in rows} | {"lo"}:
        (root / "sys/class/net" / name).mkdir(parents=True)
    (root / "proc/net").mkdir(parents=True)
    masks = {to: to if to == "00000000" else "00FFFFFF" for _, to, _ in rows}
    lines = [f"{name}\t{to}\t0100000A\t0003\t0\t0\t{metric}\t{masks[to]}\t0\t0\t0" for name, to, metric in rows]
    (root / "proc/net/route").write_text(HEAD + "\n".join(lines) + "\n")


def port(root: Path, device: str, *, state: str = "4: ACTIVE", rate: str = "400 Gb/sec (4X NDR)",
         gids: dict[int, tuple[str, str]] | None = None, driver: str = "mlx5_core") -> None:  # fmt: skip
    """An RDMA device with one port; ``gids`` are (address, type) by index."""
    folder = root / "sys/class/infiniband" / device / "ports/1"
    (folder / "gids").mkdir(parents=True)
    (folder / "gid_attrs/types").mkdir(parents=True)
    (folder / "state").write_text(state + "\n")
    (folder / "rate").write_text(rate + "\n")
    for index, (address, kind) in (gids or {}).items():
        (folder / f"gids/{index}").write_text(address + "\n")
        (folder / f"gid_attrs/types/{index}").write_text(kind + "\n")
    drivers = root / "sys/bus/pci/drivers" / driver
    drivers.mkdir(parents=True, exist_ok=True)
    link = root / "sys/class/infiniband" / device / "device"
    link.mkdir()
    (link / "driver").symlink_to(drivers)


ROCE = {0: (LINK_LOCAL, "IB/RoCE v1"), 1: (LINK_LOCAL, "RoCE v2"), 2: (V4, "IB/RoCE v1"), 3: (V4, "RoCE v2")}


def test_the_default_route_with_the_lowest_metric(tmp_path):
    routes(tmp_path, ("eth1", "00000000", 200), ("bond0", "00000000", 100), ("ib0", "0000A8C0", 0))
    assert network(tmp_path).interface == "bond0"


def test_bridges_of_containers_lead_nowhere(tmp_path):
    routes(tmp_path, ("docker0", "00000000", 0), ("veth12", "00000000", 1), ("ens51np0", "00000000", 5))
    assert network(tmp_path).interface == "ens51np0"


def test_no_network(tmp_path):
    found = network(tmp_path)
    assert (found.interface, found.interfaces, found.ports, found.nic) == (None, (), (), None)


def test_ports_that_are_down_or_slow_are_left_out(tmp_path):
    for index in range(4):
        port(tmp_path, f"mlx5_{index}", gids=ROCE)
    port(tmp_path, "mlx5_9", rate="100 Gb/sec (4X EDR)", gids=ROCE)
    port(tmp_path, "mlx5_10", state="1: DOWN")
    found = network(tmp_path)
    assert [one.device for one in found.fast] == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]
    assert (found.has_unfit_ports, found.gid_indices) == (True, (3,))
    assert [one.device for one in found.ports][-2:] == ["mlx5_9", "mlx5_10"]


def test_infiniband_has_no_roce_index(tmp_path):
    port(tmp_path, "mlx5_0", gids={0: (LINK_LOCAL, "IB/RoCE v1")})
    assert network(tmp_path).gid_indices == (None,)


@pytest.mark.parametrize(
    ("device", "driver", "family"),
    [("rdma0", "bnxt_re", "bnxt"), ("ionic_3", "ionic_rdma", "ionic"), ("rocep1s0", "mlx5_core", "mlx5")],
)
def test_the_driver_tells_the_family_of_a_nic(tmp_path, device, driver, family):
    port(tmp_path, device, driver=driver)
    assert network(tmp_path).nic == family


@pytest.fixture
def node(tmp_path, monkeypatch):
    """This machine is a node of MI300X, its files under the folder that is returned."""
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: Detected("amd", 8, gpu("mi300x")))
    monkeypatch.setattr("megawrap.surroundings.network", lambda _: network(tmp_path))
    return tmp_path


def planned(*words):
    return build(compose(["model=llama2_7b", "parallel=tp8", *words]), ambient={})


def test_several_nodes_meet_over_what_this_one_has(node):
    routes(node, ("bond0", "00000000", 0))
    port(node, "mlx5_0", gids=ROCE)
    port(node, "mlx5_1", gids=ROCE)
    port(node, "mlx5_2", state="1: DOWN")
    plan = planned("cluster.nodes=2")
    assert plan.environment["NCCL_SOCKET_IFNAME"] == plan.environment["GLOO_SOCKET_IFNAME"] == "bond0"
    assert plan.environment["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"
    assert plan.environment["NCCL_IB_GID_INDEX"] == "3"
    assert "default route" in plan.variables["NCCL_SOCKET_IFNAME"].reason


def test_one_node_needs_no_network(node):
    routes(node, ("bond0", "00000000", 0))
    port(node, "mlx5_0", gids=ROCE)
    assert not {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX"} & set(
        planned().variables
    )


def test_ports_that_are_all_fit_are_left_to_nccl(node):
    routes(node, ("bond0", "00000000", 0))
    port(node, "mlx5_0", gids=ROCE)
    assert "NCCL_IB_HCA" not in planned("cluster.nodes=2").variables


def test_another_machines_interfaces_are_not_taken(monkeypatch, tmp_path):
    """A login node without GPUs plans for a cluster that it is not part of."""
    routes(tmp_path, ("eth0", "00000000", 0))
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: None)
    monkeypatch.setattr("megawrap.surroundings.network", lambda _: pytest.fail("looked at"))
    assert "NCCL_SOCKET_IFNAME" not in planned("cluster=mi300x", "cluster.nodes=4").variables


def test_the_configuration_wins_over_what_is_found(node):
    routes(node, ("bond0", "00000000", 0), ("ib0", "0000A8C0", 0))
    port(node, "mlx5_0", gids=ROCE)
    words = ("cluster.nodes=2", "cluster.socket_interface='=ib0'", "cluster.ib_hca=mlx5_0", "cluster.ib_gid_index=0")
    plan = planned(*words)
    assert plan.environment["NCCL_SOCKET_IFNAME"] == "=ib0"
    assert plan.environment["GLOO_SOCKET_IFNAME"] == "ib0"
    assert (plan.environment["NCCL_IB_HCA"], plan.environment["NCCL_IB_GID_INDEX"]) == ("mlx5_0", "0")
    assert not [one for one in plan.findings if one.id.startswith("MW51")]


@pytest.mark.parametrize(
    ("word", "id", "nearest"),
    [
        ("cluster.socket_interface=eth9", "MW510", "cluster.socket_interface=bond0"),
        ("cluster.ib_hca=rdma0", "MW511", "cluster.ib_hca='=mlx5_0:1'"),
        ("cluster.ib_hca=mlx5_1", "MW511", "cluster.ib_hca='=mlx5_0:1'"),
    ],
)
def test_what_this_node_does_not_have_is_said(node, word, id, nearest):
    routes(node, ("bond0", "00000000", 0))
    port(node, "mlx5_0", gids=ROCE)
    port(node, "mlx5_1", state="1: DOWN")
    finding = next(one for one in planned("cluster.nodes=2", word).findings if one.id == id)
    assert (finding.severity, finding.nearest) == ("warning", (nearest,))
    assert compose(["model=llama2_7b", *finding.nearest])


def test_gid_indices_that_differ_are_left_to_nccl_and_said(node):
    routes(node, ("bond0", "00000000", 0))
    port(node, "mlx5_0", gids=ROCE)
    port(node, "mlx5_1", gids={5: (V4, "RoCE v2")})
    plan = planned("cluster.nodes=2")
    assert "NCCL_IB_GID_INDEX" not in plan.variables
    assert [one.id for one in plan.findings if one.id.startswith("MW51")] == ["MW512"]


def test_nics_have_profiles(node):
    routes(node, ("bond0", "00000000", 0))
    port(node, "ionic_0", gids=ROCE, driver="ionic_rdma")
    variables = planned("cluster.nodes=2").environment
    assert (variables["NCCL_IB_USE_INLINE"], variables["NCCL_CROSS_NIC"]) == ("1", "0")
    variables = planned("cluster.nodes=2", "cluster.nic=cxi").environment
    assert (variables["NCCL_NET_GDR_LEVEL"], variables["NCCL_CROSS_NIC"]) == ("PHB", "1")


def test_no_profile_names_a_site():
    """Interfaces and devices of somebody's machines stand in no row."""
    rows = Path(__file__).parents[2].joinpath("megawrap/hardware/environment.json").read_text()
    assert not [
        name for name in ("ens51", "ens5", "bond0", "eth0", "hsn", "rdma0", "mlx5_", "ib0") if name in rows.lower()
    ]
