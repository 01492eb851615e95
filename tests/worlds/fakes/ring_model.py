"""What mode transparent's switch does with frames, by the reference slot model and Python's codec.

Each worker's datagrams are whole frames; a chunk's packets are held back until all are there, and
then one goes on each connection, as it came but for the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address

from ina.host import Session, WorkerOptions
from ina.host.soft_ring import SoftRingLink
from ina.protocol.bth import Opcode
from ina.protocol.codec import encode
from ina.protocol.peer import Peer
from ina.protocol.ring import Ring, RingNode
from ina.protocol.roce import RoceFrame, decode_frame, encode_frame
from ina.protocol.switch_model import Attachment, Departure, SwitchModel
from tests.worlds.fakes.udp_model import UdpModel

JOB = 7
ACKNOWLEDGE = 0x11
NETWORK = IPv4Address("10.128.0.0")

Fate = Callable[[RoceFrame], list[RoceFrame]]


class RingModel(UdpModel):
    """`fate`: what becomes of a frame that goes on to a worker."""

    def __init__(
        self, *, slots: int = 16, loss: float = 0.0, seed: int = 0, fate: Fate | None = None
    ) -> None:
        self._fate = fate
        self._links: list[SoftRingLink] = []
        self.frames: list[RoceFrame] = []
        self.is_dead = False
        super().__init__(slots, loss=loss, seed=seed)

    def __enter__(self) -> RingModel:
        return self

    def ring_sessions(
        self, count: int, first_psn: int = 0xFFFFFE, op_timeout_s: float = 30.0
    ) -> list[Session]:
        lanes = self.slots // 2
        switch = Peer.at(self.address)
        links = [SoftRingLink.to(switch, "127.0.0.1", lanes) for _ in range(count)]
        self.install_ports(JOB, 1, [link.own.udp_port for link in links])
        self._links = links
        sessions = []
        for rank, link in enumerate(links):
            after, before = links[(rank + 1) % count].own, links[rank - 1].own
            ring = Ring(
                NETWORK + rank,
                NETWORK + (rank + 1) % count,
                NETWORK + (rank - 1) % count,
                after.ring_pairs[lanes:],
                before.ring_pairs[:lanes],
                first_psn,
            )
            link.lead_to(RingNode(switch.address, switch.udp_port, ring=ring))
            ticket = self.ticket(JOB, 1, rank, count)
            sessions.append(Session(ticket, link, WorkerOptions(op_timeout_s=op_timeout_s)))
        return sessions

    def forget(self) -> None:
        """Its power is lost, and its rows are back: the slots are empty."""
        with self._lock:
            job = self.model.jobs[JOB]
            self.model = SwitchModel(self.slots, self.values)
            self.model.install(job)

    def _receive(self, payload: bytes, port: int) -> None:
        """Only what is right is there to come: decode_frame() raises what is not."""
        if self.is_dead or self._lost():
            return
        frame = decode_frame(payload)
        self.frames.append(frame)
        to = frame.dst_ipv4 - int(NETWORK)
        if frame.bth.opcode == ACKNOWLEDGE:
            self._leaves(to, frame)
            return
        assert frame.bth.opcode == Opcode.RC_SEND_ONLY
        with self._lock:
            departures = self.model.receive(Attachment(0, 0, port), frame.payload)
        for departure in departures:
            self._on_flow(departure, frame)

    def _on_flow(self, departure: Departure, came: RoceFrame) -> None:
        """In place of what its worker has sent: to the next one."""
        flow = departure.header.worker
        to, lanes = (flow + 1) % len(self._links), self.slots // 2
        lane = departure.header.seq % lanes
        header = replace(departure.header, worker=to)
        self._leaves(
            to,
            replace(
                came,
                payload=encode(header, departure.values),
                src_ipv4=int(NETWORK) + flow,
                dst_ipv4=int(NETWORK) + to,
                bth=replace(came.bth, dest_qp=self._links[to].own.ring_pairs[lanes + lane]),
            ),
        )

    def _leaves(self, to: int, frame: RoceFrame) -> None:
        for one in [frame] if self._fate is None else self._fate(frame):
            if not self._lost():
                self._socket.sendto(encode_frame(one), self._links[to].own.place)
