"""Which RDMA device, and which of its addresses, is on the way to a switch or in a ring; and how
patient its connections are."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from ina.errors import InvalidInputError
from ina.extension.rdma import (
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
    "GID_TYPES", "RdmaDevice", "RdmaGid", "RdmaPatience", "RdmaPlace", "RdmaPort", "RingAddresses",
    "devices", "is_usable", "place_in_ring", "place_of", "place_towards", "why_no_wire",
]  # fmt: skip

GID_TYPES = {GID_ROCE_V1: "RoCEv1", GID_ROCE_V2: "RoCEv2"}


@dataclass(frozen=True)
class RdmaPlace:
    """A device's port, and the entry of its GID table that has an address in RoCEv2."""

    device: str
    port: int
    gid_index: int
    active_mtu_bytes: int


RingAddresses = tuple[IPv4Address, IPv4Address]
"""The first and the last of those that devices may have in rings."""

_TICK_S = 4.096e-6  # InfiniBand's: timeouts are it times a power of two
_MOST_EXPONENT = 31


@dataclass(frozen=True)
class RdmaPatience:
    """Of reliable connections. Raises InvalidInputError.

    What others have not sent yet a switch holds back, and to a device that looks like loss. So a
    connection must wait as long as a worker may be late, (retries + 1) x timeout_s; and as long as
    timeout_s a lost packet holds up the chunks of its lane.
    """

    timeout_s: float = 4.0
    """Of silence, until a message is sent again; the device takes the next power of two of 4.096
    us: 4.3 s. Devices have longest and shortest times of their own."""
    retries: int = 7
    """So often, 1 to 7; then the connection has failed."""

    def __post_init__(self) -> None:
        """Check."""
        if not _TICK_S < self.timeout_s <= _TICK_S * 2**_MOST_EXPONENT:
            raise InvalidInputError(f"RDMA timeout {self.timeout_s:g} s: want 1e-5 to 8000")
        if not 1 <= self.retries <= 7:
            raise InvalidInputError(f"RDMA retries {self.retries}: want 1 to 7")

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> RdmaPatience:
        """As INA_RDMA_TIMEOUT_S and INA_RDMA_RETRIES say. Raises InvalidInputError."""
        text = environ.get("INA_RDMA_TIMEOUT_S"), environ.get("INA_RDMA_RETRIES")
        try:
            return cls(float(text[0] or cls.timeout_s), int(text[1] or cls.retries))
        except ValueError:
            raise InvalidInputError(
                f"INA_RDMA_TIMEOUT_S={text[0]}, INA_RDMA_RETRIES={text[1]}: want numbers"
            ) from None

    @property
    def exponent(self) -> int:
        """As devices are told, 1 to 31."""
        return max(1, math.ceil(math.log2(self.timeout_s / _TICK_S)))

    def __str__(self) -> str:
        """For people."""
        return f"{self.retries} times after {_TICK_S * 2**self.exponent:.2g} s each"


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


def place_in_ring(
    switch: Peer, addresses: RingAddresses | None, own_host: str | None
) -> tuple[IPv4Address, RdmaPlace]:
    """Return the one address that devices of this host have in rings, and the device.

    `addresses`: that they may have there, as the controller says; None: none. `own_host`: that it
    is to be. Raises TransportError: there is none, or there are several; no way for a NIC, no
    libibverbs.
    """
    if why := why_no_wire(switch):
        raise TransportError(why)
    if addresses is None:
        raise TransportError(
            "the controller has no addresses for RDMA devices in its rings: say a network of more"
            " than 8192 there ([switch] rings)"
        )
    found = devices()
    first, last = addresses
    has = {at for at in _usable_addresses(found) if first <= at <= last}
    if own_host is not None:
        has = {at for at in has if str(at) == own_host}
    if len(has) == 1:
        (own,) = has
        return own, place_of(own, found)
    if has:
        several = ", ".join(map(str, sorted(has)))
        raise TransportError(f"RDMA devices have {several} in rings: say which by INA_HOST")
    wanted = f"{first} to {last}" if own_host is None else f"{own_host}, of {first} to {last},"
    raise TransportError(
        f"no RDMA device has an address of rings, {wanted} as RoCEv2: {_told(found)}"
    )


def _usable_addresses(found: Sequence[RdmaDevice]) -> Iterator[IPv4Address]:
    for device in found:
        for port in device.ports:
            yield from (IPv4Address(gid.ipv4) for gid in port.gids if is_usable(gid))


def place_of(own_address: IPv4Address, found: Sequence[RdmaDevice]) -> RdmaPlace:
    """Return where this address is an IPv4 GID of RoCEv2. Raises TransportError."""
    for device in found:
        for port in device.ports:
            for gid in port.gids:
                if gid.ipv4 == int(own_address) and is_usable(gid):
                    return RdmaPlace(device.name, port.number, gid.index, port.active_mtu_bytes)
    raise TransportError(f"no RDMA device has {own_address} as RoCEv2: {_told(found)}")


def _told(found: Sequence[RdmaDevice]) -> str:
    return "; ".join(map(_addresses_of, found)) or "there is no RDMA device"


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
