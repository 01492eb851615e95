"""Addresses that follow a rule: MACs from IPv4 addresses, and those behind shared memory.

An unprivileged UDP socket cannot see a worker's MAC; that of a multicast group is defined so.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network

_SHM_NETWORK = IPv4Network("127.64.0.0/10")
SHM_SWITCH = _SHM_NETWORK.network_address
"""Where workers seem to send that share memory with the switch (native/switch/shm_port.cpp)."""

_LOCALLY_ADMINISTERED = 0x0200_0000_0000
_MULTICAST = 0x0100_5E00_0000
_MULTICAST_BITS = 23


def mac_of(address: IPv4Address) -> int:
    """The MAC address 02:00:a.b.c.d that stands for IPv4 address ``a.b.c.d`` behind a UDP port.

    The soft switch's UDP ports build frames by the same rule (native/switch/frame.cpp).
    """
    return _LOCALLY_ADMINISTERED | int(address)


def is_shm_address(host: IPv4Address | str) -> bool:
    """Whether it is one that a worker seems to have which shares memory with the switch.

    The switch makes them up (native/switch/shm_port.cpp).
    """
    try:
        return IPv4Address(host) in _SHM_NETWORK
    except AddressValueError:
        return False


def place_of(host: IPv4Address | str, udp_port: int, process: str) -> str:
    """Where a worker is, for people: ``10.0.0.3:4433``, or its process where that is made up.

    ``process``: what it said of itself, "node7 pid 1234"; empty: nothing.
    """
    return process if process and is_shm_address(host) else f"{host}:{udp_port}"


def multicast_mac_of(group: IPv4Address) -> int:
    """The MAC address that frames to an IPv4 multicast group have (RFC 1112, section 6.4)."""
    return _MULTICAST | int(group) & ((1 << _MULTICAST_BITS) - 1)
