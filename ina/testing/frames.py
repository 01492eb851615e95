"""Frames as bytes: Ethernet, IPv4 without options, UDP. Small on purpose: tests break them."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ina.protocol.roce import ipv4_checksum
from ina.protocol.spec import UDP_PORT

ETHERNET_BYTES = 14
IPV4_BYTES = 20
UDP_BYTES = 8
PAYLOAD_OFFSET = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES
IPV4 = slice(ETHERNET_BYTES, ETHERNET_BYTES + IPV4_BYTES)
ETHERTYPE_IPV4 = 0x0800
PROTOCOL_UDP = 17
DONT_FRAGMENT = 0x4000
MORE_FRAGMENTS = 0x2000
FRAGMENT_OFFSET = 0x1FFF
CE = 3
SWITCH_MAC = 0x02_00_00_00_00_FE
SWITCH_IPV4 = 0x0A_00_00_FE
RESULT_TTL = 64

PortFrame = tuple[int, bytes]
"""A switch port and the frame that comes in or goes out there."""

_ETHERNET = struct.Struct(">6s6sH")
_IPV4 = struct.Struct(">BBHHHBBHII")
_UDP = struct.Struct(">HHHH")


@dataclass(frozen=True)
class Frame:
    """The fields of a frame with an UDP datagram in it. Checksums that are None are computed when
    it is built: a switch does not look at UDP's, but what its packets come through may."""

    payload: bytes
    src_ipv4: int
    src_udp: int
    dst_mac: int = SWITCH_MAC
    src_mac: int = 0x02_00_00_00_00_01
    dst_ipv4: int = SWITCH_IPV4
    dst_udp: int = UDP_PORT
    ttl: int = 63
    tos: int = 2  # ECT(0)
    identification: int = 0x1234
    fragment: int = DONT_FRAGMENT
    udp_checksum: int | None = None
    checksum: int | None = None

    @property
    def ecn(self) -> int:
        """The ECN bits of the IP header."""
        return self.tos & 3

    def build(self) -> bytes:
        """Returns the bytes of the frame."""
        udp_bytes = UDP_BYTES + len(self.payload)
        udp = _UDP.pack(self.src_udp, self.dst_udp, udp_bytes, self.udp_checksum or 0)
        if self.udp_checksum is None:
            udp = udp[:6] + self._udp_checksum(udp).to_bytes(2, "big")
        header = bytearray(
            _IPV4.pack(
                0x45,
                self.tos,
                IPV4_BYTES + udp_bytes,
                self.identification,
                self.fragment,
                self.ttl,
                PROTOCOL_UDP,
                0,
                self.src_ipv4,
                self.dst_ipv4,
            )
        )
        checksum = ipv4_checksum(header) if self.checksum is None else self.checksum
        header[10:12] = checksum.to_bytes(2, "big")
        return b"".join(
            (
                _ETHERNET.pack(
                    self.dst_mac.to_bytes(6, "big"), self.src_mac.to_bytes(6, "big"), ETHERTYPE_IPV4
                ),
                header,
                udp,
                self.payload,
            )
        )

    def _udp_checksum(self, udp: bytes) -> int:
        """``udp``: the header, with checksum 0. Never 0, which means none (RFC 768)."""
        pseudo = struct.pack(
            ">IIHH", self.src_ipv4, self.dst_ipv4, PROTOCOL_UDP, len(udp) + len(self.payload)
        )
        covered = pseudo + udp + self.payload
        covered += b"\0" * (len(covered) % 2)
        total = sum(struct.unpack(f">{len(covered) // 2}H", covered))
        while total > 0xFFFF:
            total = (total & 0xFFFF) + (total >> 16)
        return (total ^ 0xFFFF) or 0xFFFF


def without_udp_checksum(data: bytes) -> bytes:
    """Returns a frame that has been changed anywhere so that no port drops it for that.

    A UDP checksum of 0 is none; a program does not look at it, an interface's port does.
    """
    return data[:40] + bytes(2) + data[42:] if len(data) >= PAYLOAD_OFFSET else data


def is_udp(data: bytes) -> bool:
    """Returns whether UDP is where the switch looks: IPv4, no options, no later fragment."""
    if len(data) < PAYLOAD_OFFSET or data[12:14] != ETHERTYPE_IPV4.to_bytes(2, "big"):
        return False
    fragment = int.from_bytes(data[20:22], "big")
    return data[14] == 0x45 and data[23] == PROTOCOL_UDP and not fragment & FRAGMENT_OFFSET


def parse(data: bytes) -> Frame:
    """Returns the fields of a frame that ``is_udp``; the payload is all that follows UDP."""
    dst_mac, src_mac, _ = _ETHERNET.unpack_from(data)
    _, tos, _, identification, fragment, ttl, _, checksum, src, dst = _IPV4.unpack_from(
        data, ETHERNET_BYTES
    )
    src_udp, dst_udp, _, udp_checksum = _UDP.unpack_from(data, ETHERNET_BYTES + IPV4_BYTES)
    return Frame(
        data[PAYLOAD_OFFSET:],
        src,
        src_udp,
        int.from_bytes(dst_mac, "big"),
        int.from_bytes(src_mac, "big"),
        dst,
        dst_udp,
        ttl,
        tos,
        identification,
        fragment,
        udp_checksum,
        checksum,
    )


def is_whole(data: bytes) -> bool:
    """Returns whether lengths and checksum of a frame that ``is_udp`` say what it is."""
    total_bytes = int.from_bytes(data[16:18], "big")
    udp_bytes = int.from_bytes(data[38:40], "big")
    return (
        total_bytes == len(data) - ETHERNET_BYTES
        and udp_bytes == total_bytes - IPV4_BYTES
        and not int.from_bytes(data[20:22], "big") & MORE_FRAGMENTS
        and int.from_bytes(data[24:26], "big") == ipv4_checksum(data[IPV4])
    )
