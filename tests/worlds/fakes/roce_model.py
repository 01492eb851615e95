"""The reference switch model behind RoCEv2, as a soft switch's UDP port has it: Python's codec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address

from ina.host import Session, WorkerOptions
from ina.host.soft_roce import SoftRoceLink
from ina.protocol.bth import Bth, Opcode
from ina.protocol.codec import encode
from ina.protocol.peer import Peer
from ina.protocol.roce import (
    RoceFrame,
    decode_frame,
    encode_frame,
    psn_of,
    switch_qp,
)
from ina.protocol.switch_model import Departure
from tests.worlds.fakes.udp_model import UdpModel

LOCALHOST = int(IPv4Address("127.0.0.1"))
_BEFORE_BTH = 14 + 20 + 8
JOB = 7

Spoil = Callable[[RoceFrame], list[bytes]]


class RoceModel(UdpModel):
    """Workers' links are SoftRoceLinks; `spoil`: makes the datagrams of a frame that leaves."""

    def __init__(self, *, loss: float = 0.0, seed: int = 0, spoil: Spoil | None = None) -> None:
        self._spoil = spoil
        self._links: dict[int, SoftRoceLink] = {}
        self.frames: list[RoceFrame] = []
        super().__init__(loss=loss, seed=seed)

    def __enter__(self) -> RoceModel:
        return self

    def roce_sessions(self, count: int) -> list[Session]:
        links = [SoftRoceLink.open(Peer.at(self.address), "127.0.0.1") for _ in range(count)]
        self._links = {link.own.udp_port: link for link in links}
        self.install_ports(JOB, 1, list(self._links))
        sessions = []
        for rank, link in enumerate(links):
            link.lead_to(replace(Peer.at(self.address), queue_pair=switch_qp(JOB, rank)))
            ticket = self.ticket(JOB, 1, rank, count)
            sessions.append(Session(ticket, link, WorkerOptions(op_timeout_s=30.0)))
        return sessions

    def opened(self, payload: bytes, port: int) -> bytes:
        """Of a frame as the switch's UDP port makes it; raises what is wrong with it."""
        made = RoceFrame(Bth(0, 0, 0), payload[12:-4], LOCALHOST, LOCALHOST, port)
        frame = decode_frame(encode_frame(made)[:_BEFORE_BTH] + payload)
        rank = list(self._links).index(port)
        assert frame.bth.opcode == Opcode.UC_SEND_ONLY
        assert frame.bth.dest_qp == switch_qp(JOB, rank)
        self.frames.append(frame)
        return frame.payload

    def sealed(self, departure: Departure) -> list[bytes]:
        """BTH .. ICRC."""
        own = self._links[departure.to.udp_port].own
        header = departure.header
        bth = Bth(Opcode.UC_SEND_ONLY, own.queue_pair, psn_of(header.seq))
        payload = encode(header, departure.values)
        frame = RoceFrame(bth, payload, LOCALHOST, LOCALHOST, own.udp_port)
        return [datagram(frame)] if self._spoil is None else self._spoil(frame)


def datagram(frame: RoceFrame) -> bytes:
    """What of a frame goes through a tunnel."""
    return encode_frame(frame)[_BEFORE_BTH:]
