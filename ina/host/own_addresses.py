"""The IPv4 addresses of this host: a controller with several switches finds by them where it is."""

from __future__ import annotations

import array
import contextlib
import fcntl
import socket
import struct
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address

_SIOCGIFCONF = 0x8912  # linux/sockios.h
_IFREQ_BYTES, _ADDRESS_OFFSET = 40, 20  # struct ifreq of 64-bit Linux; its sockaddr_in's address
_MOST = 1024
_ANY_PORT = 9  # nothing is sent


def own_addresses(controller: str, own_host: str | None = None) -> list[str]:
    """Return this host's IPv4 addresses: first the one it sends from, then all but 127.0.0.0/8.

    `controller`: "host:port", what is on the way to it counts as the way to the switch as long as
    that is not known; with a controller on this host an address of 127.0.0.0/8 may be first.
    `own_host`: the address that was asked for instead.
    """
    first = own_host or towards(controller.rpartition(":")[0])
    found = dict.fromkeys([first] if first else [])
    found.update(dict.fromkeys(map(str, _of_interfaces())))
    return list(found)


def why_not_own(host: str) -> str:
    """That ``host`` is no IPv4 address of this host, and which are; empty: it is one."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        has = ", ".join(map(str, dict.fromkeys(_of_interfaces())))
        return f"this host has no IPv4 address {host}; it has {has or 'none but loopback'}"
    return ""


def towards(host: str) -> str:
    """Return this host's IPv4 address on the way to another; empty: there is no way."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host.rpartition("/")[2], _ANY_PORT))
        address: str = probe.getsockname()[0]
        return address
    return ""


def _of_interfaces() -> Iterator[IPv4Address]:
    """Aliases too; a kernel that does not say has none."""
    names = array.array("B", bytes(_IFREQ_BYTES * _MOST))
    start, bytes_ = names.buffer_info()
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_one:
        said = fcntl.ioctl(any_one, _SIOCGIFCONF, struct.pack("iL", bytes_, start))
        (used,) = struct.unpack_from("i", said)
        for at in range(0, used, _IFREQ_BYTES):
            with contextlib.suppress(AddressValueError):
                address = IPv4Address(names.tobytes()[at + _ADDRESS_OFFSET : at + 24])
                if not address.is_loopback:
                    yield address
