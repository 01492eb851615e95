"""IPv4 networks that a configuration names: of results to many, and of rings."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from ina.p4 import names
from ina.protocol.spec import MAX_WORKERS

USUAL_NETWORK = "239.192.0.0/24"
"""Of the addresses that an organisation may use as it likes (RFC 2365, section 6.2)."""

_MULTICAST = IPv4Network("224.0.0.0/4")
_LINK_LOCAL = IPv4Network("224.0.0.0/24")
"""Of routing protocols and the like; hosts and switches treat these addresses in ways of their own.
"""


def ipv4_network(text: str) -> IPv4Network:
    """What the text says. Raises :class:`ValueError` with one line about what is wrong."""
    try:
        return IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an IPv4 network: {error}") from None


def rings_of(text: str) -> IPv4Network | None:
    """The network that ``switch.rings`` says; None: there is none.

    Raises :class:`ValueError` with one line about what is wrong.
    """
    if not text:
        return None
    network = ipv4_network(text)
    if network.num_addresses < names.JOBS_TOTAL * MAX_WORKERS:
        raise ValueError(
            f"{text} has {network.num_addresses} addresses: jobs may have"
            f" {names.JOBS_TOTAL * MAX_WORKERS}"
        )
    if network.is_multicast or network.is_loopback:
        raise ValueError(f"{text} is no network of hosts")
    return network


def device_rings_of(text: str) -> tuple[IPv4Address, IPv4Address] | None:
    """The first and the last address of ``switch.rings`` that RDMA devices may have.

    They are those behind what the controller gives to workers without one, to each place in each
    job its own. None: it has no more. Raises :class:`ValueError` as rings_of() does.
    """
    network = rings_of(text)
    if network is None:
        return None
    first, end = names.JOBS_TOTAL * MAX_WORKERS, network.num_addresses - 1  # broadcast
    return (network[first], network[end - 1]) if first < end else None


def network_of(text: str) -> IPv4Network | None:
    """The network that ``switch.multicast`` says; None: each worker gets results of its own.

    Raises :class:`ValueError` with one line about what is wrong.
    """
    if not text:
        return None
    network = ipv4_network(text)
    if not network.subnet_of(_MULTICAST):
        raise ValueError(f"{text} is not within {_MULTICAST}, IPv4's multicast addresses")
    if network.overlaps(_LINK_LOCAL):
        raise ValueError(f"{text} has addresses of {_LINK_LOCAL}, which are for routing protocols")
    if network.num_addresses < names.JOBS_TOTAL:
        raise ValueError(
            f"{text} has {network.num_addresses} addresses, and each of {names.JOBS_TOTAL} jobs"
            " needs its own: a /24, or wider"
        )
    return network
