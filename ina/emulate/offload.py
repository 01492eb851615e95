"""Switches off what a network card would do for the kernel: behind a veth pair there is none.

With it on, the kernel hands on TCP segments of 64 KiB and checksums that are still to be computed;
BMv2 would drop the one and deliver the other as they are.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
_SET_COMMANDS = (0x17, 0x1F, 0x24, 0x2C)  # ETHTOOL_STXCSUM, _STSO, _SGSO, _SGRO


def switch_off(interface: str) -> None:
    """Of an interface in this thread's namespace. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for number in _SET_COMMANDS:
            value = ctypes.create_string_buffer(struct.pack("II", number, 0))
            request = struct.pack("16sP", interface.encode(), ctypes.addressof(value))
            # The kernel reads a whole struct ifreq: 40 bytes on 64-bit machines.
            fcntl.ioctl(sock, _SIOCETHTOOL, request.ljust(40, b"\0"))
