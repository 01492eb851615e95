"""Packets of ina in a frame: what each says, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ina.pcap.datagram import Datagram, datagram_of
from ina.pcap.frame import CapturedFrame
from ina.protocol.codec import Header, Values, announced_bytes, decode, decode_header
from ina.protocol.errors import PacketError
from ina.protocol.spec import HEADER_BYTES, UDP_PORT


@dataclass(frozen=True)
class Packet:
    """One packet for or from the switch. Without ``header``, ``problem`` says why."""

    frame: CapturedFrame
    datagram: Datagram
    header: Header | None
    values: Values | None  # None: the capture did not keep them all, or the packet is bad
    problem: str = ""  # why a switch drops it, whatever job it is for; "": well-formed
    cut: bool = False  # the capture did not keep all of it

    @property
    def time_ns(self) -> int:
        """When it was captured, in ns since 1970."""
        return self.frame.time_ns


def packets_of(frame: CapturedFrame, udp_ports: Collection[int] = (UDP_PORT,)) -> Iterator[Packet]:
    """Yields the frame's packets from or to one of the switch's UDP ports; none: other traffic.

    Several are in one frame where the sender's kernel left the cutting to the network card
    (UDP_SEGMENT, seen on loopback and veth): the capture then shows what was not cut yet.
    """
    datagram = datagram_of(frame)
    if datagram is None or not {datagram.src_port, datagram.dst_port} & set(udp_ports):
        return
    for payload in _segments(datagram):
        yield _packet(frame, datagram, payload)


def _segments(datagram: Datagram) -> list[bytes]:
    """The payload; or equal parts of it, the last one shorter perhaps, if each is a packet."""
    payload = datagram.payload
    try:
        step_bytes = announced_bytes(payload)
        parts = [payload[at : at + step_bytes] for at in range(0, len(payload), step_bytes)]
        whole = parts if not datagram.missing_bytes else parts[:-1]
        for part in parts:
            decode_header(part)
        if all(announced_bytes(part) == len(part) for part in whole):
            return parts
    except PacketError:
        pass
    return [payload]


def _packet(frame: CapturedFrame, datagram: Datagram, payload: bytes) -> Packet:
    header, values, problem = None, None, ""
    try:
        header = decode_header(payload)
        _, values = decode(payload)
    except PacketError as error:
        problem = str(error)
    missing_bytes = announced_bytes(payload) - len(payload) if header else HEADER_BYTES
    if datagram.missing_bytes and missing_bytes > 0:
        problem = "" if header else "the capture has not kept its whole header"
        return Packet(frame, datagram, header, None, problem, cut=True)
    return Packet(frame, datagram, header, values, problem)
