"""Packets of ina in a frame: what each says, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from ina.pcap.datagram import Datagram, datagram_of, frame_in
from ina.pcap.frame import CapturedFrame
from ina.pcap.sends import Icrc, Send, is_roce, sends_in
from ina.protocol.bth import ROCE_UDP_PORT
from ina.protocol.codec import Header, Values, announced_bytes, decode, decode_header
from ina.protocol.errors import PacketError
from ina.protocol.spec import HEADER_BYTES, UDP_PORT

UDP_PORTS = (UDP_PORT, ROCE_UDP_PORT)
"""A switch's, as far as nothing else is said."""


@dataclass(frozen=True)
class Packet:
    """One packet for or from the switch. Without ``header``, ``problem`` says why."""

    frame: CapturedFrame
    datagram: Datagram
    header: Header | None
    values: Values | None  # None: the capture did not keep them all, or their number is wrong
    problem: str = ""  # why a switch drops it, whatever job it is for; "": well-formed
    cut: bool = False  # the capture did not keep all of it
    send: Send | None = None  # what is around it in RoCEv2; None: nothing but UDP

    @property
    def time_ns(self) -> int:
        """When it was captured, in ns since 1970."""
        return self.frame.time_ns

    @property
    def is_spoilt(self) -> bool:
        """Whether its ICRC is wrong: then nothing that it says need be so."""
        return self.send is not None and self.send.icrc is Icrc.WRONG


class Contents(NamedTuple):
    """Of one frame."""

    packets: list[Packet]
    is_roce: bool = False
    """Whether it is RoCEv2's, be it ina's or of others."""


def contents_of(frame: CapturedFrame, udp_ports: Collection[int] = UDP_PORTS) -> Contents:
    """The frame's packets from or to one of the switch's UDP ports; none: other traffic.

    Several are in one frame where the sender's kernel left the cutting to the network card
    (UDP_SEGMENT, seen on loopback and veth): the capture then shows what was not cut yet. Where a
    datagram holds a frame (a soft switch's port ``frames:``), that frame is looked at.
    """
    datagram = datagram_of(frame)
    if datagram is None or not _is_of(datagram, udp_ports):
        return Contents([])
    found = _contents(frame, datagram)
    if not found.is_roce and all(packet.problem for packet in found.packets):
        inner = datagram_of(frame_in(frame, datagram))
        if inner is not None and _is_of(inner, UDP_PORTS):
            return _contents(frame, inner)
    return found


def _contents(frame: CapturedFrame, datagram: Datagram) -> Contents:
    sends = sends_in(datagram)
    if sends or is_roce(datagram):
        return Contents([_sent(frame, datagram, send) for send in sends], is_roce=True)
    missing_bytes = datagram.missing_bytes
    return Contents([_packet(frame, datagram, it, missing_bytes) for it in _segments(datagram)])


def _is_of(datagram: Datagram, udp_ports: Collection[int]) -> bool:
    return not {datagram.src_port, datagram.dst_port}.isdisjoint(udp_ports)


def packets_of(frame: CapturedFrame, udp_ports: Collection[int] = UDP_PORTS) -> Iterator[Packet]:
    """Yields what :func:`contents_of` finds."""
    yield from contents_of(frame, udp_ports).packets


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


def _sent(frame: CapturedFrame, datagram: Datagram, send: Send) -> Packet:
    is_cut = send.icrc is Icrc.NOT_CAPTURED
    found = _packet(frame, datagram, send.body, int(is_cut))
    problem = "; ".join(filter(None, [found.problem, send.problem]))
    return replace(found, send=send, problem=problem, cut=is_cut)


def _packet(frame: CapturedFrame, datagram: Datagram, payload: bytes, missing_bytes: int) -> Packet:
    """``missing_bytes``: of the datagram."""
    header, values, problem = None, None, ""
    try:
        header = decode_header(payload)
        _, values = decode(payload)
    except PacketError as error:
        problem = str(error)
    lacks_bytes = announced_bytes(payload) - len(payload) if header else HEADER_BYTES
    if missing_bytes and lacks_bytes > 0:
        problem = "" if header else "the capture has not kept its whole header"
        return Packet(frame, datagram, header, None, problem, cut=True)
    return Packet(frame, datagram, header, values, problem)
