"""From a frame to the UDP datagram in it: Ethernet, VLAN, Linux "any" captures, raw IPv4."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from ina.pcap.frame import CapturedFrame

_ETHERNET, _RAW, _LINUX_SLL, _IPV4, _LINUX_SLL2 = 1, 101, 113, 228, 276
_BSD_RAW = (12, 14)  # what some systems write for LINKTYPE_RAW
_ETHERTYPE_IPV4 = 0x0800
_VLAN_TAGS = (0x8100, 0x88A8)
_PROTOCOL_UDP = 17
_MORE_FRAGMENTS, _FRAGMENT_OFFSET = 0x2000, 0x1FFF
_UDP_BYTES = 8


@dataclass(frozen=True)
class Datagram:
    """A UDP datagram over IPv4. ``missing_bytes``: of its payload, that the capture did not keep
    or that are in later fragments."""

    src: IPv4Address
    src_port: int
    dst: IPv4Address
    dst_port: int
    ecn: int  # the two bits of the IP header; 3 is "congestion experienced"
    payload: bytes
    missing_bytes: int
    headers: bytes  # IPv4's, with its options, and UDP's


def datagram_of(frame: CapturedFrame) -> Datagram | None:
    """Returns the datagram; None for any other traffic, and for a frame cut before its ports."""
    packet = _ip_packet(frame)
    if packet is None or len(packet) < 20 or packet[0] >> 4 != 4 or packet[9] != _PROTOCOL_UDP:
        return None
    header_bytes = (packet[0] & 15) * 4
    total_bytes, _, fragment = struct.unpack_from(">HHH", packet, 2)
    if fragment & _FRAGMENT_OFFSET or len(packet) < header_bytes + _UDP_BYTES:
        return None
    if total_bytes >= header_bytes + _UDP_BYTES:  # 0 in some super-frames
        packet = packet[:total_bytes]  # behind it is the padding of a short Ethernet frame
    src_port, dst_port, udp_bytes = struct.unpack_from(">HHH", packet, header_bytes)
    payload = packet[header_bytes + _UDP_BYTES :]
    payload_bytes = max(0, udp_bytes - _UDP_BYTES) if udp_bytes else len(payload)
    src, dst = packet[12:16], packet[16:20]
    return Datagram(
        IPv4Address(src),
        src_port,
        IPv4Address(dst),
        dst_port,
        packet[1] & 3,
        payload[:payload_bytes],
        _missing(frame, len(payload), payload_bytes, bool(fragment & _MORE_FRAGMENTS)),
        packet[: header_bytes + _UDP_BYTES],
    )


def frame_in(frame: CapturedFrame, datagram: Datagram) -> CapturedFrame:
    """What a datagram of a soft switch's port ``frames:`` holds: an Ethernet frame. Of any other
    datagram it is one that holds nothing."""
    whole_bytes = len(datagram.payload) + datagram.missing_bytes
    return replace(frame, link_type=_ETHERNET, data=datagram.payload, wire_bytes=whole_bytes)


def _missing(frame: CapturedFrame, held_bytes: int, payload_bytes: int, fragmented: bool) -> int:
    """A datagram that its sender made too short is whole in the capture: nothing is missing."""
    not_kept = len(frame.data) < frame.wire_bytes
    return max(0, payload_bytes - held_bytes) if not_kept or fragmented else 0


def _ip_packet(frame: CapturedFrame) -> bytes | None:
    data, kind = frame.data, frame.link_type
    if kind in (_RAW, _IPV4, *_BSD_RAW):
        return data
    if kind == _ETHERNET:
        at = 12
        while len(data) >= at + 4 and int.from_bytes(data[at : at + 2], "big") in _VLAN_TAGS:
            at += 4
    elif kind == _LINUX_SLL:
        at = 14
    elif kind == _LINUX_SLL2:  # the protocol comes first, the packet behind 20 bytes
        return data[20:] if data[:2] == _ETHERTYPE_IPV4.to_bytes(2, "big") else None
    else:
        return None
    if int.from_bytes(data[at : at + 2], "big") != _ETHERTYPE_IPV4:
        return None
    return data[at + 2 :]
