"""Addresses that both ends derive by rule, because an unprivileged UDP socket cannot see them."""

from __future__ import annotations

from ipaddress import IPv4Address

_LOCALLY_ADMINISTERED = 0x0200_0000_0000


def mac_of(address: IPv4Address) -> int:
    """The MAC address 02:00:a.b.c.d that stands for IPv4 address ``a.b.c.d`` behind a UDP port.

    The soft switch's UDP ports build frames by the same rule (native/switch/frame.cpp).
    """
    return _LOCALLY_ADMINISTERED | int(address)
