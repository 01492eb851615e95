"""MAC addresses that follow from IPv4 addresses by rule.

An unprivileged UDP socket cannot see a worker's own; that of a multicast group is defined so.
"""

from __future__ import annotations

from ipaddress import IPv4Address

_LOCALLY_ADMINISTERED = 0x0200_0000_0000
_MULTICAST = 0x0100_5E00_0000
_MULTICAST_BITS = 23


def mac_of(address: IPv4Address) -> int:
    """The MAC address 02:00:a.b.c.d that stands for IPv4 address ``a.b.c.d`` behind a UDP port.

    The soft switch's UDP ports build frames by the same rule (native/switch/frame.cpp).
    """
    return _LOCALLY_ADMINISTERED | int(address)


def multicast_mac_of(group: IPv4Address) -> int:
    """The MAC address that frames to an IPv4 multicast group have (RFC 1112, section 6.4)."""
    return _MULTICAST | int(group) & ((1 << _MULTICAST_BITS) - 1)
