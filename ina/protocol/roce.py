"""RoCEv2 frames with ina's packets as the payload of SENDs.

A frame is Ethernet / IPv4 without options / UDP to port 4791 / BTH (12 bytes) / ina's header (32
bytes) / values / ICRC. Ina's header stands in every packet of a message, so each says by itself
which slot it is for, and a switch keeps nothing of a queue pair.

Sources: :mod:`ina.protocol.bth`, :mod:`ina.protocol.icrc`; RFC 791 and RFC 768. That results are
SENDs, where SwitchML (Sapio et al., NSDI 2021) writes to an echoed address, is ina's.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from ina.protocol.bth import (
    BTH_BYTES,
    PSN_BITS,
    RC_SENDS,
    ROCE_UDP_PORT,
    UC_SENDS,
    Bth,
    Opcode,
    decode_bth,
    encode_bth,
)
from ina.protocol.errors import (
    FieldRangeError,
    ForeignPacketError,
    OverlongPacketError,
    PacketError,
    TruncatedPacketError,
)
from ina.protocol.icrc import ICRC_BYTES, icrc, without_icrc
from ina.protocol.spec import DropReason

_ETHERNET = struct.Struct(">6s6sH")
_IPV4 = struct.Struct(">BBHHHBBHII")
_UDP = struct.Struct(">HHHH")
_HEADERS_BYTES = _ETHERNET.size + _IPV4.size + _UDP.size
_ETHERTYPE_IPV4, _PROTOCOL_UDP = 0x0800, 17
_NO_OPTIONS = 0x45  # version 4, five words
_DONT_FRAGMENT, _LATER_OR_MORE = 0x4000, 0x3FFF
_MAX_IP_BYTES = 0xFFFF


DROP_ICRC = len(DropReason)
"""Index of the drop counter, in programs that speak RoCEv2: an ICRC that is not the packet's."""


@dataclass(frozen=True)
class RoceFrame:
    """One frame's fields. MAC addresses are 48-bit numbers, IPv4 addresses 32-bit ones."""

    bth: Bth
    payload: bytes
    """Of the SEND: ina's header and values; whole words."""
    src_ipv4: int
    dst_ipv4: int
    src_udp: int
    """Any: NICs take it from their queue pairs, for the sake of networks that hash it."""
    src_mac: int = 0
    dst_mac: int = 0
    tos: int = 2
    """DSCP and ECN; as NICs with congestion control send it, ECT(0)."""
    ttl: int = 64
    identification: int = 0
    """With flags, covered by the ICRC."""
    flags: int = _DONT_FRAGMENT
    """The 16 bits of the IPv4 header with the fragment's offset."""


def encode_frame(frame: RoceFrame) -> bytes:
    """Returns the frame's bytes, from the Ethernet header to the ICRC; UDP's checksum is 0 (none).

    Raises FieldRangeError: a number does not fit its field, or all that an IPv4 packet.
    """
    datagram_bytes = _UDP.size + BTH_BYTES + len(frame.payload) + ICRC_BYTES
    total_bytes = _IPV4.size + datagram_bytes
    if total_bytes > _MAX_IP_BYTES:
        raise FieldRangeError(f"a payload of {len(frame.payload)} bytes does not fit an IP packet")
    try:
        ethernet = _ETHERNET.pack(
            frame.dst_mac.to_bytes(6, "big"), frame.src_mac.to_bytes(6, "big"), _ETHERTYPE_IPV4
        )
        before = _NO_OPTIONS, frame.tos, total_bytes, frame.identification, frame.flags, frame.ttl
        addresses = frame.src_ipv4, frame.dst_ipv4
        unsummed = _IPV4.pack(*before, _PROTOCOL_UDP, 0, *addresses)
        ipv4 = _IPV4.pack(*before, _PROTOCOL_UDP, ipv4_checksum(unsummed), *addresses)
        udp = _UDP.pack(frame.src_udp, ROCE_UDP_PORT, datagram_bytes, 0)
    except (struct.error, OverflowError) as error:
        raise FieldRangeError(f"a number of {frame} does not fit its field: {error}") from None
    packet = ipv4 + udp + encode_bth(frame.bth) + frame.payload
    return ethernet + packet + icrc(packet)


def decode_frame(data: bytes) -> RoceFrame:
    """Returns what is in a frame's bytes.

    Raises ForeignPacketError (not IPv4 without options, UDP to port 4791 in one piece),
    TruncatedPacketError and OverlongPacketError (lengths and what is there differ), PacketError
    (the IP header's checksum), IcrcError.
    """
    if len(data) < _HEADERS_BYTES:
        raise TruncatedPacketError(
            f"frame of {len(data)} bytes is shorter than Ethernet, IPv4 and UDP, {_HEADERS_BYTES}"
        )
    dst_mac, src_mac, ethertype = _ETHERNET.unpack_from(data)
    header = data[_ETHERNET.size : _ETHERNET.size + _IPV4.size]
    first, tos, total_bytes, identification, flags, ttl, protocol, checksum, src, dst = (
        _IPV4.unpack(header)
    )
    src_udp, dst_udp, udp_bytes, _ = _UDP.unpack_from(data, _ETHERNET.size + _IPV4.size)
    said = ethertype, first, protocol, dst_udp, flags & _LATER_OR_MORE
    if said != (_ETHERTYPE_IPV4, _NO_OPTIONS, _PROTOCOL_UDP, ROCE_UDP_PORT, 0):
        raise ForeignPacketError(f"not RoCEv2: {data[:_HEADERS_BYTES].hex()}")
    _check_lengths(len(data) - _ETHERNET.size, total_bytes, udp_bytes)
    if checksum != ipv4_checksum(header):
        raise PacketError(f"IP checksum {checksum:#06x}, expected {ipv4_checksum(header):#06x}")
    covered = without_icrc(data[_ETHERNET.size :])
    behind_udp = covered[_IPV4.size + _UDP.size :]
    return RoceFrame(
        decode_bth(behind_udp),
        bytes(behind_udp[BTH_BYTES:]),
        src,
        dst,
        src_udp,
        int.from_bytes(src_mac, "big"),
        int.from_bytes(dst_mac, "big"),
        tos,
        ttl,
        identification,
        flags,
    )


def ipv4_checksum(header: bytes | bytearray) -> int:
    """Returns the checksum (RFC 791) of a 20-byte header, whatever its checksum field holds."""
    words: tuple[int, ...] = struct.unpack(">10H", header)
    total = sum(words) - words[5]
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


PARENT_INDEX = 32
"""Of the queue pair that a switch's parent sends to, behind those of its children."""
_QP_INDEX_BITS = 6
_SWITCH_QP = 1 << 23


def switch_qp(job: int, index: int) -> int:
    """Number of the queue pair that a switch, or what else sums, has for a neighbour in a job.

    ``job``: the header's number, 16 bits. ``index``: of a child, 0..31, or ``PARENT_INDEX``. Never
    0 or 1, which are InfiniBand's own.
    """
    return _SWITCH_QP | job << _QP_INDEX_BITS | index


def psn_of(seq: int, first_psn: int = 0) -> int:
    """Packet sequence number of a chunk's packets: neighbours in a message follow each other.

    ``first_psn``: chunk 0's, 24 bits.
    """
    return seq + first_psn & (1 << PSN_BITS) - 1


_PSN_STRIDE = 0x9E_3779  # odd, and far from 0 modulo 2^24: epochs in a row are far apart


def ring_psn(epoch: int) -> int:
    """The packet number of chunk 0 on all connections of a ring, by its job's epoch.

    Adapters give queue pairs' numbers out again: what is late of a former connection is far from
    what the new one expects.
    """
    return epoch * _PSN_STRIDE & (1 << PSN_BITS) - 1


class Connection(NamedTuple):
    """The opcodes of SENDs on one kind of connections."""

    first: Opcode
    middle: Opcode
    last: Opcode
    only: Opcode


UC = Connection(*UC_SENDS)
RC = Connection(*RC_SENDS)


def opcode_of(seq: int, segments: int, on: Connection = UC) -> Opcode:
    """A chunk's place in its message.

    ``segments``: packets of a message, a power of two. Raises FieldRangeError: it is none.
    """
    if segments < 1 or segments & segments - 1:
        raise FieldRangeError(f"messages of {segments} packets: a power of two is wanted")
    place = seq & segments - 1
    if segments == 1:
        return on.only
    if place == 0:
        return on.first
    return on.last if place == segments - 1 else on.middle


def _check_lengths(there_bytes: int, total_bytes: int, udp_bytes: int) -> None:
    """Of an IPv4 packet: what is there, what IP says, and what UDP says must agree."""
    least = _IPV4.size + _UDP.size + BTH_BYTES + ICRC_BYTES
    if there_bytes < total_bytes or total_bytes < least:
        raise TruncatedPacketError(
            f"{there_bytes} bytes of an IP packet of {total_bytes}, RoCEv2 has {least} at least"
        )
    if there_bytes > total_bytes:
        raise OverlongPacketError(f"{there_bytes} bytes of an IP packet of {total_bytes}")
    if udp_bytes != total_bytes - _IPV4.size:
        error = (
            TruncatedPacketError if udp_bytes > total_bytes - _IPV4.size else OverlongPacketError
        )
        raise error(f"UDP says {udp_bytes} bytes, IP has {total_bytes - _IPV4.size} for it")
