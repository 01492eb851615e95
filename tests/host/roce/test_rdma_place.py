"""Which device and address a worker takes: by address and type, never the first that is there."""

from __future__ import annotations

from ipaddress import IPv4Address
from types import SimpleNamespace
from typing import Any

import pytest

from ina.errors import InvalidInputError
from ina.extension.rdma import GID_ROCE_V1, GID_ROCE_V2
from ina.host import rdma
from ina.host.errors import TransportError
from ina.host.rdma import RdmaPatience, place_in_ring, place_of, why_no_wire
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


SWITCH = Peer.at(("192.0.2.1", 4791))
IN_RINGS = IPv4Address("10.128.32.0"), IPv4Address("10.128.63.254")
TWO = [
    device("mlx5_0", gid(3, GID_ROCE_V2, "10.0.0.5"), gid(4, GID_ROCE_V2, "10.128.32.1")),
    device("mlx5_1", gid(5, GID_ROCE_V2, "10.128.31.255"), gid(6, GID_ROCE_V2, "10.128.63.254")),
]


@pytest.mark.parametrize(
    ("devices", "own_host", "found"),
    [
        (TWO[:1], None, ("10.128.32.1", "mlx5_0", 4)),
        (TWO[1:], None, ("10.128.63.254", "mlx5_1", 6)),
        (TWO, "10.128.63.254", ("10.128.63.254", "mlx5_1", 6)),
        (TWO, None, "RDMA devices have 10.128.32.1, 10.128.63.254 in rings: say which by INA_HOST"),
        (TWO, "10.0.0.5", "no RDMA device has an address of rings, 10.0.0.5, of 10.128.32.0 to"
                          " 10.128.63.254, as RoCEv2: mlx5_0 has 10.0.0.5 (RoCEv2), 10.128.32.1"),
        ([], None, "no RDMA device has an address of rings, 10.128.32.0 to 10.128.63.254 as RoCEv2:"
                   " there is no RDMA device"),
    ],
)  # fmt: skip
def test_the_one_address_in_rings(
    monkeypatch: pytest.MonkeyPatch, devices: list[Any], own_host: str | None, found: Any
) -> None:
    monkeypatch.setattr(rdma, "devices", lambda: devices)
    if isinstance(found, str):
        with pytest.raises(TransportError) as caught:
            place_in_ring(SWITCH, IN_RINGS, own_host)
        assert str(caught.value).startswith(found)
        return
    own, place = place_in_ring(SWITCH, IN_RINGS, own_host)
    assert (str(own), place.device, place.gid_index) == found


def test_rings_that_no_device_is_in() -> None:
    with pytest.raises(TransportError, match=r"say a network of more than 8192 there"):
        place_in_ring(SWITCH, None, None)
    with pytest.raises(TransportError, match="is the end of a tunnel"):
        place_in_ring(Peer.at(("192.0.2.1", 17760)), IN_RINGS, None)


@pytest.mark.parametrize(
    ("timeout_s", "exponent"), [(4.0, 20), (4.3, 21), (0.067, 14), (5e-6, 1), (8000.0, 31)]
)
def test_a_timeout_is_a_power_of_two(timeout_s: float, exponent: int) -> None:
    assert RdmaPatience(timeout_s).exponent == exponent


def test_patience_is_checked() -> None:
    said = {"INA_RDMA_TIMEOUT_S": "0.5", "INA_RDMA_RETRIES": "3"}
    assert RdmaPatience.from_environ(said) == RdmaPatience(0.5, 3)
    assert RdmaPatience.from_environ({}) == RdmaPatience()
    assert str(RdmaPatience(0.5, 3)) == "3 times after 0.54 s each"
    for name, value in (("TIMEOUT_S", "0"), ("TIMEOUT_S", "9000"), ("RETRIES", "8"),
                        ("RETRIES", "0"), ("RETRIES", "two")):  # fmt: skip
        with pytest.raises(InvalidInputError, match="RDMA"):
            RdmaPatience.from_environ({f"INA_RDMA_{name}": value})
