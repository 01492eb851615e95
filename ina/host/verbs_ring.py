"""A worker's place in a ring by an RDMA device: transport ``roce`` of mode ``transparent``."""

from __future__ import annotations

from ipaddress import IPv4Address

from ina.extension.host import Framing, Transport, TransportOptions, WorkerConfig
from ina.extension.rdma import RcRing, RcRingPath
from ina.host.errors import TransportError
from ina.host.rdma import RdmaPatience, RdmaPlace
from ina.host.soft_ring import RING_RTO
from ina.host.verbs_link import ECT0, flow_of
from ina.protocol.peer import Peer
from ina.protocol.ring import RingNode


class VerbsRingLink:
    """For each lane a queue pair to the next worker, and one from the one before."""

    switch_port = 0
    is_shm = False
    is_listening = False
    rto = RING_RTO
    framing = Framing()
    """BTH and ICRC are the device's."""

    def __init__(
        self, queues: RcRing, own_address: IPv4Address, switch: Peer, patience: RdmaPatience
    ) -> None:
        """Take over queue pairs that lead nowhere yet."""
        self._queues: RcRing | None = queues
        pairs = *queues.out_numbers, *queues.in_numbers
        self.own = Peer(own_address, flow_of(pairs[0]), ring_pairs=pairs)
        self.leads_to: Peer | None = None
        self.name = f"a ring of RoCE past {switch.address}"
        self._patience = patience
        self._dscp = 0

    @classmethod
    def open(
        cls, who: str, switch: Peer, own_address: IPv4Address, place: RdmaPlace, lanes: int,
        packet_bytes: int, patience: RdmaPatience,
    ) -> VerbsRingLink:  # fmt: skip
        """Make queue pairs for packets, header and values, of at most `packet_bytes`.

        `own_address` is the device's, in rings. Raises TransportError.
        """
        try:
            queues = RcRing(place.device, place.port, place.gid_index, lanes, packet_bytes)
        except RuntimeError as error:
            raise TransportError(f"{who}: RoCE past {switch.address}: {error}") from None
        return cls(queues, own_address, switch, patience)

    def lead_to(self, node: Peer) -> None:
        """Connect to both neighbours. Raises TransportError.

        To be called once, before transport().
        """
        assert self._queues is not None
        ring = node.ring if isinstance(node, RingNode) else None
        if ring is None:
            raise TransportError(f"{self.name}: the controller has said no place in a ring")
        if ring.own != self.own.address:
            raise TransportError(
                f"{self.name}: the controller says that this worker has {ring.own} in its ring, and"
                f" its device has {self.own.address}"
            )
        path = RcRingPath(
            next_ipv4=int(ring.next),
            previous_ipv4=int(ring.previous),
            next_in=list(ring.next_pairs),
            previous_out=list(ring.previous_pairs),
            first_psn=ring.first_psn,
            traffic_class=self._dscp << 2 | ECT0,
            timeout=self._patience.exponent,
            retries=self._patience.retries,
        )
        try:
            self._queues.connect(path)
        except (RuntimeError, ValueError) as error:
            raise TransportError(f"{self.name}: {error}") from None
        self.leads_to = node
        self.name = f"a ring of RoCE, from {ring.previous} by {ring.own} to {ring.next}"

    def set_dscp(self, dscp: int) -> None:
        """What its packets carry, 0 to 63. To be called before lead_to()."""
        self._dscp = dscp

    def transport(self, config: WorkerConfig, options: TransportOptions) -> Transport:
        """Start to work over it, with one thread. Raises RuntimeError."""
        assert self._queues is not None
        return Transport.rc_ring(self._queues, config, options)

    def stop_listening(self) -> None:
        """Nothing: each worker's sums come to its own queue pairs."""

    def close(self) -> None:
        """Let go of the queue pairs, which a transport keeps. Idempotent."""
        self._queues = None
