"""What joining needs of the worker's own host: its addresses, and the way to the switch."""

from __future__ import annotations

from collections.abc import Sequence

from ina import modes
from ina.host.calls import device_rings_of, results_of, switch_of
from ina.host.errors import TransportError
from ina.host.link import SwitchLink, check_speaks, open_link, open_ring_link, open_roce_link
from ina.host.member.join import JoinRequest
from ina.host.node import NodePlace
from ina.host.own_addresses import own_addresses, towards
from ina.host.rdma import RdmaPatience
from ina.host.shm import ShmLink
from ina.host.ticket import lanes_of
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES
from ina.rpc import controller_pb2 as pb2


class RealHost:
    """This machine: see :class:`ina.host.member.join.OwnHost`."""

    def __init__(self, request: JoinRequest) -> None:
        """`request`: who is to join, and how."""
        self._who, self._options = request.who, request.options

    def addresses(self, controller: str) -> Sequence[str]:
        """Its IPv4 addresses, first the one towards the controller at "host:port"."""
        return own_addresses(controller, self._options.host)

    def towards(self, host: str) -> str:
        """Its IPv4 address that another host sees."""
        return towards(host)

    def open(
        self, created: pb2.CreateJobReply, left_s: float
    ) -> tuple[SwitchLink, NodePlace | None]:
        """The way to the switch, or to this host's node; with a switch on this host there is none.

        Raises TransportError.
        """
        options, node = self._options, self._options.node
        packets = max(created.slots // 2, 1)
        packet_bytes = HEADER_BYTES + VALUE_BYTES * created.values_per_packet
        check_speaks(self._who, options.transport, created.mode)
        way = self._who, options.transport, switch_of(created), options.host
        match modes.of(created.mode).framing:
            case "rocev2":
                return open_roce_link(*way, packets, packet_bytes), None
            case "ring":
                return self._open_ring(created, packet_bytes), None
        has_node = node is not None and created.takes_host_nodes and options.transport != "udp"
        link = open_link(
            self._who,
            "auto" if has_node else options.transport,
            switch_of(created),
            created.switch_shm,
            options.host,
            packets,
            packet_bytes,
            results_of(created),
        )
        if node is None or not has_node or isinstance(link, ShmLink):
            return link, None
        try:
            place = node.open(
                created.values_per_packet,
                created.slots,
                own_host=link.own.place[0],
                switch_host=created.switch_host,
                timeout_s=left_s,
            )
            if place is None and options.transport == "shm":
                raise TransportError(
                    f"{self._who}: the switch offers no shared memory, and no node is here"
                )
            near = None if place is None else ShmLink.attach(place.shm, packets, packet_bytes)
        except BaseException:
            link.close()
            raise
        if near is None:
            return link, None
        link.close()
        return near, place

    def _open_ring(self, created: pb2.CreateJobReply, packet_bytes: int) -> SwitchLink:
        options = self._options
        return open_ring_link(
            self._who,
            options.transport,
            switch_of(created),
            options.host,
            lanes_of(created.slots),
            packet_bytes,
            device_rings_of(created),
            options.rdma or RdmaPatience.from_environ(),
        )
