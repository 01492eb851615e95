"""What an interface can do with XDP, as the kernel tells by netlink since Linux 6.3."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ina.switch.xdp.libbpf import XdpError

_GENERIC, _REQUEST, _ERROR = 16, 1, 2
_CONTROL_FAMILY, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 3, 1, 2
_GET_DEVICE, _INDEX, _FEATURES = 1, 1, 3
_BASIC, _REDIRECT, _TAKES_REDIRECTED = 1, 2, 4
"""NETDEV_XDP_ACT_BASIC, _REDIRECT, _NDO_XMIT."""
LOSES = "of virtual Ethernet the other end wants ethtool -K PEER gro on, and some cards cannot"
"""Why an interface may not take what is redirected to it."""
_TIMEOUT_S = 2.0
_REPLY_BYTES = 1 << 16


@dataclass(frozen=True)
class Features:
    """Of an interface."""

    is_native: bool
    """Its driver runs programs, and what they redirect leaves them."""
    takes_redirected: bool
    """It sends what programs redirect to it; virtual Ethernet: its other end does take it."""


def features_of(interface: str) -> Features | None:
    """None: this kernel does not tell. Raises :class:`XdpError`: there is no such interface."""
    try:
        index = socket.if_nametoindex(interface)
    except OSError:
        raise XdpError(f"interface {interface}: No such device") from None
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _GENERIC) as sock:
            sock.settimeout(_TIMEOUT_S)
            name = _attribute(_FAMILY_NAME, b"netdev\0")
            found = _ask(sock, _CONTROL_FAMILY, _GET_FAMILY, name)
            (family,) = struct.unpack_from("=H", found[_FAMILY_ID])
            told = _ask(sock, family, _GET_DEVICE, _attribute(_INDEX, struct.pack("=I", index)))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EOPNOTSUPP):
            return None
        raise XdpError(f"interface {interface}: {error.strerror or error}") from None
    (bits,) = struct.unpack_from("=Q", told[_FEATURES])
    native = _BASIC | _REDIRECT
    return Features(bits & native == native, bool(bits & _TAKES_REDIRECTED))


def _ask(sock: socket.socket, family: int, command: int, attribute: bytes) -> dict[int, bytes]:
    """The attributes of its answer, by number. Raises OSError."""
    body = struct.pack("=BBH", command, 1, 0) + attribute
    sock.send(struct.pack("=IHHII", 16 + len(body), family, _REQUEST, 0, 0) + body)
    reply = sock.recv(_REPLY_BYTES)
    size, kind = struct.unpack_from("=IH", reply)
    if kind == _ERROR:
        (code,) = struct.unpack_from("=i", reply, 16)
        raise OSError(-code, os.strerror(-code))
    return dict(_attributes(reply[20:size]))


def _attribute(number: int, value: bytes) -> bytes:
    size = 4 + len(value)
    return struct.pack("=HH", size, number) + value + bytes(-size % 4)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        size, number = struct.unpack_from("=HH", data, at)
        yield number & 0x3FFF, data[at + 4 : at + size]
        at += max(4, size + -size % 4)
