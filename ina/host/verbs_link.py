"""A worker's queue pair on an RDMA NIC: transport ``roce``."""

from __future__ import annotations

from ipaddress import IPv4Address

from ina.extension.host import (
    Framing,
    RtoLimits,
    Transport,
    TransportOptions,
    WorkerConfig,
)
from ina.extension.rdma import UcQueue
from ina.host.errors import TransportError
from ina.host.rdma import RdmaPlace
from ina.protocol.peer import Peer

_FIRST_FLOW = 0xC000
"""NICs say UDP source ports from here on, by their queue pairs (IBTA, annex A17)."""
_FLOW_MASK = 0x3FFF
ECT0 = 2
"""What the ECN bits of its packets are: devices slow down by marks."""


def flow_of(queue_pair: int) -> int:
    """The UDP source port of what its worker gets, as a device would say it."""
    return _FIRST_FLOW | queue_pair & _FLOW_MASK


class VerbsLink:
    """A queue pair on an unreliable connection, at the device that has the worker's address."""

    switch_port = 0
    is_shm = False
    is_listening = False
    rto = RtoLimits()
    framing = Framing()
    """BTH and ICRC are the NIC's."""

    def __init__(self, queue: UcQueue, own_address: IPv4Address, switch: Peer) -> None:
        """Take over a queue pair, towards a switch that has not said its own yet."""
        self._queue: UcQueue | None = queue
        self.own = Peer(own_address, flow_of(queue.number), queue_pair=queue.number)
        self.leads_to: Peer | None = None
        self.name = f"RoCE {switch.address}"
        self._dscp = 0

    @classmethod
    def open(
        cls, who: str, switch: Peer, own_address: IPv4Address, place: RdmaPlace,
        packets: int, packet_bytes: int,
    ) -> VerbsLink:  # fmt: skip
        """Make a queue pair for so many packets in flight, of at most `packet_bytes`.

        Packets are header and values; `own_address` is the device's. Raises TransportError.
        """
        try:
            queue = UcQueue(place.device, place.port, place.gid_index, packets, packet_bytes)
        except RuntimeError as error:
            raise TransportError(f"{who}: RoCE to {switch.address}: {error}") from None
        return cls(queue, own_address, switch)

    def lead_to(self, node: Peer) -> None:
        """Connect to the switch's queue pair. Raises TransportError.

        To be called once, before transport().
        """
        assert self._queue is not None
        try:
            self._queue.connect(int(node.address), node.queue_pair, 0, self._dscp << 2 | ECT0)
        except RuntimeError as error:
            raise TransportError(f"{self.name}: {error}") from None
        self.leads_to = node
        self.name = f"RoCE {node.address} queue pair {node.queue_pair:#x}"

    def set_dscp(self, dscp: int) -> None:
        """What its packets carry, 0 to 63. To be called before lead_to()."""
        self._dscp = dscp

    def transport(self, config: WorkerConfig, options: TransportOptions) -> Transport:
        """Start to work over it, with one thread. Raises RuntimeError."""
        assert self._queue is not None
        return Transport.roce(self._queue, config, options)

    def stop_listening(self) -> None:
        """Nothing: each worker's results come to its own queue pair."""

    def close(self) -> None:
        """Let go of the queue pair, which a transport keeps. Idempotent."""
        self._queue = None
