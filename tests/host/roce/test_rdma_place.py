"""Which device and address a worker takes: by address and type, never the first that is there."""

from __future__ import annotations

from ipaddress import IPv4Address
from types import SimpleNamespace
from typing import Any

import pytest

from ina.extension.host import GID_ROCE_V1, GID_ROCE_V2
from ina.host.errors import TransportError
from ina.host.rdma import place_of, why_no_wire
from ina.protocol.peer import Peer

OWN = IPv4Address("10.0.0.5")


def gid(index: int, kind: int, address: str) -> Any:
    return SimpleNamespace(index=index, type=kind, ipv4=int(IPv4Address(address)), address=address)


def device(name: str, *gids: Any, trouble: str = "") -> Any:
    port = SimpleNamespace(number=1, active_mtu_bytes=1024, gids=list(gids))
    return SimpleNamespace(name=name, trouble=trouble, ports=[] if trouble else [port])


def test_the_entry_of_its_address_in_rocev2() -> None:
    devices = [
        device("mlx5_0", gid(3, GID_ROCE_V2, "10.0.0.4")),
        device("mlx5_1", gid(0, GID_ROCE_V1, "10.0.0.5"), gid(7, GID_ROCE_V2, "10.0.0.5")),
    ]
    place = place_of(OWN, devices)
    assert (place.device, place.port, place.gid_index) == ("mlx5_1", 1, 7)


@pytest.mark.parametrize(
    ("switch", "says"),
    [
        (("127.0.0.1", 4791), "the switch at 127.0.0.1:4791 is a socket of this host's"),
        (("192.0.2.1", 17760), "the switch at 192.0.2.1:17760 is the end of a tunnel"),
        (("192.0.2.1", 4791), ""),
    ],
)
def test_where_no_nic_gets_to(switch: tuple[str, int], says: str) -> None:
    assert why_no_wire(Peer.at(switch)).startswith(says)
    assert bool(why_no_wire(Peer.at(switch))) is bool(says)


@pytest.mark.parametrize(
    ("devices", "there"),
    [
        ([], "there is no RDMA device"),
        ([device("mlx5_0", gid(0, GID_ROCE_V1, "10.0.0.5"))], "mlx5_0 has 10.0.0.5 (RoCEv1)"),
        ([device("a"), device("b", trouble="it cannot be opened: x")],
         "a has no IPv4 address; b: it cannot be opened: x"),
    ],
)  # fmt: skip
def test_what_is_there_is_told(devices: list[Any], there: str) -> None:
    with pytest.raises(TransportError) as caught:
        place_of(OWN, devices)
    assert str(caught.value) == f"no RDMA device has 10.0.0.5 as RoCEv2: {there}"
