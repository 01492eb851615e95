"""Which RDMA device, and which of its addresses, is on the way to a switch."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from ina.extension.host import (
    GID_ROCE_V1,
    GID_ROCE_V2,
    RdmaDevice,
    RdmaGid,
    RdmaPort,
    rdma_devices,
)
from ina.host.errors import TransportError
from ina.host.own_addresses import why_not_own
from ina.host.udp import open_socket
from ina.protocol.bth import ROCE_UDP_PORT
from ina.protocol.peer import Peer

__all__ = [
    "GID_TYPES", "RdmaDevice", "RdmaGid", "RdmaPlace", "RdmaPort", "devices", "is_usable",
    "place_of", "place_towards", "why_no_wire",
]  # fmt: skip

GID_TYPES = {GID_ROCE_V1: "RoCEv1", GID_ROCE_V2: "RoCEv2"}


@dataclass(frozen=True)
class RdmaPlace:
    """A device's port, and the entry of its GID table that has an address in RoCEv2."""

    device: str
    port: int
    gid_index: int
    active_mtu_bytes: int


def devices() -> list[RdmaDevice]:
    """All of this machine. Raises TransportError: no libibverbs, or an old one."""
    try:
        return rdma_devices()
    except RuntimeError as error:
        raise TransportError(str(error)) from None


def is_usable(gid: RdmaGid) -> bool:
    """Whether it is an IPv4 address in RoCEv2."""
    return gid.ipv4 != 0 and gid.type == GID_ROCE_V2


def why_no_wire(switch: Peer) -> str:
    """Why no NIC's packets get there, whichever is here; empty: they may."""
    if switch.udp_port != ROCE_UDP_PORT:
        return f"the switch at {switch} is the end of a tunnel for RoCEv2 in software, not a NIC's"
    if not why_not_own(str(switch.address)):
        return f"the switch at {switch} is a socket of this host's, and NICs send to others"
    return ""


def place_towards(switch: Peer, own_host: str | None) -> tuple[IPv4Address, RdmaPlace]:
    """Return this host's address towards the switch, and the device that has it.

    Raises TransportError: no way there, or none for a NIC, no libibverbs, no such device.
    """
    if why := why_no_wire(switch):
        raise TransportError(why)
    with contextlib.closing(open_socket(switch, own_host)) as sock:
        own_address = Peer.at(sock.getsockname()).address
    return own_address, place_of(own_address, devices())


def place_of(own_address: IPv4Address, found: Sequence[RdmaDevice]) -> RdmaPlace:
    """Return where this address is an IPv4 GID of RoCEv2. Raises TransportError."""
    for device in found:
        for port in device.ports:
            for gid in port.gids:
                if gid.ipv4 == int(own_address) and is_usable(gid):
                    return RdmaPlace(device.name, port.number, gid.index, port.active_mtu_bytes)
    there = "; ".join(map(_addresses_of, found)) or "there is no RDMA device"
    raise TransportError(f"no RDMA device has {own_address} as RoCEv2: {there}")


def _addresses_of(device: RdmaDevice) -> str:
    """For people, in an error's line."""
    if device.trouble:
        return f"{device.name}: {device.trouble}"
    gids = [
        f"{IPv4Address(gid.ipv4)} ({GID_TYPES.get(gid.type, 'InfiniBand')})"
        for port in device.ports
        for gid in port.gids
        if gid.ipv4
    ]
    return f"{device.name} has {', '.join(gids) or 'no IPv4 address'}"
