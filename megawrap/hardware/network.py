"""How this machine reaches others: the interface of its default route and its RDMA ports, from sysfs and procfs."""

from __future__ import annotations

import collections
import dataclasses
import re
from pathlib import Path

# Bridges and tunnels of containers and virtual machines: they lead to no other node.
_VIRTUAL = re.compile(r"(lo$|docker|veth|br-|virbr|cni|flannel|cali|tun|tap|kube)")
_DRIVERS = (("mlx5", "mlx5"), ("bnxt", "bnxt"), ("ionic", "ionic"), ("efa", "efa"), ("hfi1", "hfi1"))
_ROCE_V2 = "RoCE v2"


@dataclasses.dataclass(frozen=True)
class Port:
    """A port of an RDMA device. ``gbits`` is its rate in Gbit/s, ``gid_index`` the entry of its table that RoCE v2 can
    be routed by (an IPv4 address); ``None`` on InfiniBand, and where there is none."""

    device: str
    number: int
    is_active: bool
    gbits: float
    gid_index: int | None


@dataclasses.dataclass(frozen=True)
class Network:
    """``interface`` carries the default route; ``interfaces`` are all that exist; ``ports`` are those of all RDMA
    devices; ``nic`` is the family of their driver (mlx5, bnxt, ionic, cxi ...)."""

    interface: str | None
    interfaces: tuple[str, ...]
    ports: tuple[Port, ...]
    nic: str | None

    @property
    def fast(self) -> tuple[Port, ...]:
        """The active ports at the rate that most of them have: the others lead to storage or to the front network."""
        rates = collections.Counter(port.gbits for port in self.ports if port.is_active)
        usual = max(rates, key=lambda rate: (rates[rate], rate), default=0.0)
        return tuple(port for port in self.ports if port.is_active and port.gbits == usual)

    @property
    def has_unfit_ports(self) -> bool:
        """Whether RCCL, left alone, would also meet ports that are down or slower than the rest."""
        return 0 < len(self.fast) < len(self.ports)

    @property
    def gid_indices(self) -> tuple[int | None, ...]:
        """The different routable GID indices of the fast ports."""
        return tuple(dict.fromkeys(port.gid_index for port in self.fast))


def network(root: Path = Path("/")) -> Network:
    """The network of the machine whose files are under ``root`` (another root is for tests)."""
    names = tuple(sorted(path.name for path in root.glob("sys/class/net/*") if path.is_dir()))
    devices = sorted(root.glob("sys/class/infiniband/*"), key=lambda path: _natural(path.name))
    ports = tuple(_port(device.name, port) for device in devices for port in sorted(device.glob("ports/*")))
    return Network(_default(root, names), names, ports, _nic(root, [device.name for device in devices]))


def _default(root: Path, names: tuple[str, ...]) -> str | None:
    """The interface of the IPv4 default route with the lowest metric."""
    rows = [line.split() for line in _text(root / "proc/net/route").splitlines()[1:]]
    routes = sorted((int(row[6]), row[0]) for row in rows if len(row) > 7 and row[1] == row[7] == "00000000")
    return next((name for _, name in routes if name in names and not _VIRTUAL.match(name)), None)


def _port(device: str, port: Path) -> Port:
    state, rate = _text(port / "state"), re.match(r"[\d.]+", _text(port / "rate"))
    is_active = state.partition(":")[2].strip() == "ACTIVE"
    return Port(device, int(port.name), is_active, float(rate[0]) if rate else 0.0, _gid_index(port))


def _gid_index(port: Path) -> int | None:
    """The first RoCE v2 entry with an IPv4 address (``::ffff:a.b.c.d``): a link-local one is not routed."""
    for gid in sorted(port.glob("gids/*"), key=lambda path: int(path.name)):
        is_v2 = _text(port / "gid_attrs/types" / gid.name).strip() == _ROCE_V2
        if is_v2 and _text(gid).strip().startswith("0000:0000:0000:0000:0000:ffff:"):
            return int(gid.name)
    return None


def _nic(root: Path, devices: list[str]) -> str | None:
    """The family of the NICs' driver. RoCE devices may be renamed (``rdma0``), so the driver itself is asked first."""
    for device in devices:
        driver = root / "sys/class/infiniband" / device / "device/driver"
        words = f"{driver.resolve().name if driver.exists() else ''} {device}"
        for start, family in _DRIVERS:
            if start in words:
                return family
    return "cxi" if any(root.glob("sys/class/cxi/*")) else None


def _natural(name: str) -> list[tuple[int, str]]:
    """An order in which mlx5_10 comes after mlx5_9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _text(path: Path) -> str:
    """What a file holds; nothing where it is not there or, as the entries of an empty GID table, cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
