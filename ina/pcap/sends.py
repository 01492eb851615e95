"""From a UDP datagram to the SENDs of RoCEv2 in it that carry packets of ina.

A datagram to port 4791 is a frame as adapters make it. One of another port may be a tunnel's, to or
from a soft switch's port ``rocev2:``: the switch makes a frame of it, and ICRC is that frame's.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

from ina.pcap.datagram import Datagram
from ina.protocol.bth import (
    BTH_BYTES,
    DEFAULT_PKEY,
    RC_SENDS,
    ROCE_UDP_PORT,
    UC_SENDS,
    Bth,
    decode_bth,
)
from ina.protocol.codec import announced_bytes
from ina.protocol.icrc import ICRC_BYTES, icrc
from ina.protocol.spec import HEADER_BYTES, VERSION

_IPV4 = struct.Struct(">BBHHHBBHII")
_UDP = struct.Struct(">HHHH")
_HEADERS_BYTES = _IPV4.size + _UDP.size
_IP_LENGTH, _UDP_LENGTH = 2, _IPV4.size + 4
_NO_OPTIONS, _DONT_FRAGMENT, _PROTOCOL_UDP = 0x45, 0x4000, 17


class Icrc(Enum):
    """What a capture tells of a packet's ICRC."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_CAPTURED = "not captured"


@dataclass(frozen=True)
class Send:
    """What is around one packet of ina's."""

    bth: Bth
    body: bytes
    """Ina's header and values, as far as the capture has them."""
    icrc: Icrc
    is_tunnelled: bool

    @property
    def is_of_ring(self) -> bool:
        """Whether it is on a connection between two workers, whose sums a switch puts in place."""
        return self.bth.opcode in RC_SENDS

    @property
    def problem(self) -> str:
        """Why a switch drops it, whatever is in it; "": for nothing."""
        found = []
        around = self.bth.pad_bytes, self.bth.version, self.bth.pkey
        if around != (0, 0, DEFAULT_PKEY):
            padding, version, pkey = around
            found.append(f"BTH with {padding} bytes of padding, version {version}, pkey {pkey:#x}")
        return "; ".join([*found, *(["its ICRC is wrong"] if self.icrc is Icrc.WRONG else [])])


def is_roce(datagram: Datagram) -> bool:
    """Whether it is RoCEv2's by its port, with ina's packets in it or not."""
    return ROCE_UDP_PORT in (datagram.src_port, datagram.dst_port)


def sends_in(datagram: Datagram) -> list[Send]:
    """Its SENDs, several where the cutting was left to the network card; none: of others.

    Ina's are without immediate data, have the header's version, and the length that it announces.
    """
    if (
        len(datagram.headers) != _HEADERS_BYTES
    ):  # options: no adapter and no switch of ina's takes it
        return []
    parts = _parts(datagram.payload, is_cut=datagram.missing_bytes > 0)
    return [_send(datagram, part, length_bytes, len(parts)) for part, length_bytes in parts]


def _parts(payload: bytes, *, is_cut: bool) -> list[tuple[bytes, int]]:
    """Equal parts, the last one shorter perhaps, each with the length that it announces; none, if
    one of them is no such packet.

    ``is_cut``: the capture lacks the end. A last part without its whole header is left out.
    """
    step_bytes = _length_bytes(payload)
    found: list[tuple[bytes, int]] = []
    for at in range(0, len(payload), step_bytes) if step_bytes else ():
        part = payload[at : at + step_bytes]
        length_bytes = _length_bytes(part)
        if len(part) < (length_bytes or step_bytes) and is_cut:
            return [*found, (part, length_bytes)] if length_bytes else found
        if len(part) != length_bytes:
            return []
        found.append((part, length_bytes))
    return found


def _length_bytes(part: bytes) -> int:
    """BTH, packet and ICRC, by what the header of a packet of ina's says; 0: it is none."""
    if len(part) < BTH_BYTES + HEADER_BYTES or part[BTH_BYTES] >> 4 != VERSION:
        return 0
    if part[0] not in (*UC_SENDS, *RC_SENDS):
        return 0
    return BTH_BYTES + announced_bytes(part[BTH_BYTES:]) + ICRC_BYTES


def _send(datagram: Datagram, part: bytes, length_bytes: int, parts: int) -> Send:
    is_tunnelled = not is_roce(datagram)
    packet_end = length_bytes - ICRC_BYTES
    found = Icrc.NOT_CAPTURED
    if len(part) == length_bytes:
        if is_tunnelled:
            # The worker's port, of the two that a tunnel has.
            ports = (datagram.src_port, datagram.dst_port)
            heads = [_head_in_tunnel(datagram, port) for port in ports]
        else:
            heads = [datagram.headers]
        if parts > 1 or is_tunnelled:
            heads = [_of_length(head, len(part)) for head in heads]
        is_right = any(icrc(head + part[:packet_end]) == part[packet_end:] for head in heads)
        found = Icrc.RIGHT if is_right else Icrc.WRONG
    return Send(decode_bth(part), part[BTH_BYTES:packet_end], found, is_tunnelled)


def _head_in_tunnel(datagram: Datagram, src_port: int) -> bytes:
    """The headers, but for lengths, of the frame that a datagram stands for."""
    ipv4 = _IPV4.pack(
        *(_NO_OPTIONS, 0, 0, 0, _DONT_FRAGMENT, 0, _PROTOCOL_UDP, 0),
        *(int(datagram.src), int(datagram.dst)),
    )
    return ipv4 + _UDP.pack(src_port, ROCE_UDP_PORT, 0, 0)


def _of_length(head: bytes, payload_bytes: int) -> bytes:
    """With the lengths of a datagram of its own."""
    anew = bytearray(head)
    struct.pack_into(">H", anew, _IP_LENGTH, _HEADERS_BYTES + payload_bytes)
    struct.pack_into(">H", anew, _UDP_LENGTH, _UDP.size + payload_bytes)
    return bytes(anew)
