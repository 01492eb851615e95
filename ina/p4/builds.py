"""The compiled builds: which there are, and which of them a path bears."""

from __future__ import annotations

import fcntl
import socket
import struct
from collections.abc import Sequence

from ina.errors import InvalidInputError
from ina.p4 import names
from ina.protocol.spec import (
    DEFAULT_VALUES_PER_PACKET,
    HEADER_BYTES,
    ROCE_VALUES_PER_PACKET_BUILDS,
    VALUE_BYTES,
    VALUES_PER_PACKET_BUILDS,
)

ETHERNET_BYTES = 14
IP_UDP_HEADER_BYTES = 20 + 8
_IP_MTU = 14  # linux/in.h; Python's socket module has no name for it
_SIOCGIFADDR, _SIOCGIFMTU = 0x8915, 0x8921  # linux/sockios.h; struct ifreq has 16 bytes of name


def listed(word: str, builds: Sequence[int] = VALUES_PER_PACKET_BUILDS) -> str:
    """``64, 256, 360 or 1024``: for messages. ``word`` comes before the last."""
    *others, last = map(str, builds)
    return f"{', '.join(others)} {word} {last}" if others else last


_OF_MODES = dict.fromkeys((names.ROCE, names.TRANSPARENT), ROCE_VALUES_PER_PACKET_BUILDS)


def builds_of(mode: str) -> tuple[int, ...]:
    """Values a packet of the builds of a mode's program, ascending."""
    return _OF_MODES.get(mode, VALUES_PER_PACKET_BUILDS)


def usual_build(mode: str) -> int:
    """Values a packet where nobody says: ina's default, or the largest build below that."""
    return max(values for values in builds_of(mode) if values <= DEFAULT_VALUES_PER_PACKET)


def all_builds() -> tuple[tuple[str, int], ...]:
    """Mode and values a packet of every build, in the order of the documentation."""
    return tuple((mode, values) for mode in names.MODES for values in builds_of(mode))


def require_build(option: str, values: int, mode: str = names.DEFAULT_MODE) -> None:
    """Raises :class:`~ina.errors.InvalidInputError`: no build of the mode's program has so many
    values a packet."""
    builds = builds_of(mode)
    if values not in builds:
        raise InvalidInputError(f"{option} {values}: there are builds for {listed('and', builds)}")


def require_mode(option: str, mode: str) -> str:
    """Returns ``mode``; raises :class:`~ina.errors.InvalidInputError`: no program has it."""
    if mode not in names.MODES:
        raise InvalidInputError(
            f"{option} {mode}: there are programs for {' and '.join(names.MODES)}"
        )
    return mode


def packet_bytes(values: int) -> int:
    """Of an IP packet with so many values: what a path's MTU has to be at least."""
    return IP_UDP_HEADER_BYTES + HEADER_BYTES + VALUE_BYTES * values


def frame_bytes(values: int) -> int:
    """Of such a packet's Ethernet frame, from its header to the last value."""
    return ETHERNET_BYTES + packet_bytes(values)


def socket_mtu_bytes(connected: socket.socket) -> int:
    """Largest IP packet that the kernel sends whole to where a socket is connected to."""
    return connected.getsockopt(socket.IPPROTO_IP, _IP_MTU)


def interface_mtu_bytes(address: str) -> int | None:
    """MTU of the interface that has this IPv4 address; None: none of this host's has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                found = fcntl.ioctl(any_socket, _SIOCGIFADDR, request)
                if socket.inet_ntoa(found[20:24]) == address:
                    found = fcntl.ioctl(any_socket, _SIOCGIFMTU, request)
                    return int(struct.unpack_from("=i", found, 16)[0])
            except OSError:  # it has no IPv4 address, or is gone
                continue
    return None


def largest_build(mtu_bytes: int, builds: Sequence[int] = VALUES_PER_PACKET_BUILDS) -> int:
    """Values a packet of the largest of a target's builds whose packets pass whole.

    Raises :class:`~ina.errors.InvalidInputError`: none does.
    """
    fitting = [build for build in builds if packet_bytes(build) <= mtu_bytes]
    if not fitting:
        least = min(builds)
        raise InvalidInputError(
            f"MTU {mtu_bytes}: packets of the smallest build, {least} values, have"
            f" {packet_bytes(least)} bytes"
        )
    return max(fitting)
