"""A worker's way to the switch: UDP, or shared memory where both are on one host."""

from __future__ import annotations

import logging
from typing import Protocol

from ina.errors import InvalidInputError
from ina.extension.host import Transport, TransportOptions, WorkerConfig
from ina.host.errors import NoSwitchHereError, TransportError
from ina.host.member.join_link import JoinLink
from ina.host.rdma import RdmaPatience, RingAddresses, place_in_ring, place_towards
from ina.host.shm import ShmLink
from ina.host.soft_ring import SoftRingLink
from ina.host.soft_roce import SoftRoceLink
from ina.host.udp import UdpLink
from ina.host.verbs_link import VerbsLink
from ina.host.verbs_ring import VerbsRingLink
from ina.modes.transports import (
    RDMA,
    SOFT_RDMA,
    TransportName,
    transport_names,
    transports_of,
)
from ina.protocol.peer import Peer

_log = logging.getLogger(__name__)


class SwitchLink(JoinLink, Protocol):
    """What a session sends over."""

    @property
    def name(self) -> str:
        """For people: "shared memory" or "UDP host:port"."""

    def transport(self, config: WorkerConfig, options: TransportOptions) -> Transport:
        """Start to work over it. Raises RuntimeError."""


def check_transport(name: str, value: str) -> None:
    """Raise InvalidInputError unless the value, of what is called `name`, is a TransportName."""
    if value not in transport_names():
        raise InvalidInputError(f"{name} {value!r}: want {', '.join(transport_names())}")


def check_speaks(who: str, transport: str, mode: str) -> None:
    """Raise TransportError where packets of a job's mode do not go by this transport."""
    takes = transports_of(mode)
    if transport not in ("auto", *takes):
        raise TransportError(
            f"{who}: transport {transport!r}, and the job has mode {mode!r}, whose packets go by"
            f" {' or '.join(takes)}"
        )


def _bearing(link: UdpLink, who: str, packet_bytes: int) -> UdpLink:
    """The same, if the first link takes such packets; else it is closed. Raises TransportError."""
    try:
        link.check_mtu(who, packet_bytes)
    except TransportError:
        link.close()
        raise
    return link


def open_roce_link(
    who: str,
    transport: TransportName,
    switch: Peer,
    own_host: str | None,
    packets: int,
    packet_bytes: int,
) -> SwitchLink:
    """Open the way to a switch that speaks RoCEv2. Raises TransportError.

    `packets` of at most `packet_bytes`, header and values, may be in flight.
    """
    if transport != SOFT_RDMA:
        try:
            own_address, place = place_towards(switch, own_host)
        except TransportError as error:
            if transport == RDMA:
                raise TransportError(f"{who}: {error}; ina doctor --roce says more") from None
            _log.warning("%s: RoCEv2 in software (%s): %s", who, SOFT_RDMA, error)
        else:
            return VerbsLink.open(who, switch, own_address, place, packets, packet_bytes)
    return _bearing(SoftRoceLink.open(switch, own_host), who, packet_bytes)


def open_ring_link(
    who: str,
    transport: TransportName,
    switch: Peer,
    own_host: str | None,
    lanes: int,
    packet_bytes: int,
    device_addresses: RingAddresses | None,
    patience: RdmaPatience,
) -> SwitchLink:
    """Open the way round a ring that passes this switch. Raises TransportError.

    `lanes` packets of `packet_bytes`, header and values, may be in flight. `device_addresses`: of
    RDMA devices in rings, `patience`: of their connections.
    """
    if transport != SOFT_RDMA:
        try:
            own_address, place = place_in_ring(switch, device_addresses, own_host)
        except TransportError as error:
            if transport == RDMA:
                raise TransportError(f"{who}: {error}; ina doctor --roce says more") from None
            _log.warning("%s: RoCEv2 in software (%s): %s", who, SOFT_RDMA, error)
        else:
            return VerbsRingLink.open(
                who, switch, own_address, place, lanes, packet_bytes, patience
            )
    return _bearing(SoftRingLink.to(switch, own_host, lanes), who, packet_bytes)


def open_link(
    who: str,
    transport: TransportName,
    switch: Peer,
    switch_shm: str,
    own_host: str | None,
    packets: int,
    packet_bytes: int,
    results: Peer | None = None,
) -> SwitchLink:
    """Open the way to a switch that speaks plain UDP, that `transport` asks for.

    `who`: for messages. `switch_shm`: the address of the switch's shared-memory port, or empty.
    `packets` of at most `packet_bytes` may be in flight. `results`: the multicast group of results
    to several workers, if there are such; a worker that cannot listen there does without.
    Raises TransportError.
    """
    if transport == "shm" and not switch_shm:
        raise TransportError(f"{who}: the switch offers no shared memory")
    if transport != "udp" and switch_shm:
        try:
            return ShmLink.attach(switch_shm, packets, packet_bytes)
        except NoSwitchHereError as error:
            if transport == "shm":
                raise
            _log.info("%s: %s", who, error)
        except TransportError as error:
            if transport == "shm":
                raise
            _log.warning("%s: UDP instead of shared memory: %s", who, error)
    link = _bearing(UdpLink.open(switch, own_host), who, packet_bytes)
    if results is not None:
        try:
            link.listen(results)
        except TransportError as error:
            _log.warning("%s: %s; the switch will send it results of its own", who, error)
    return link
