"""The IPv4 multicast network that results for several workers at once go to: an address a job."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from ina.p4 import names

USUAL_NETWORK = "239.192.0.0/24"
"""Of the addresses that an organisation may use as it likes (RFC 2365, section 6.2)."""

_MULTICAST = IPv4Network("224.0.0.0/4")
_LINK_LOCAL = IPv4Network("224.0.0.0/24")
"""Of routing protocols and the like; hosts and switches treat these addresses in ways of their own.
"""


def network_of(text: str) -> IPv4Network | None:
    """The network that ``switch.multicast`` says; None: each worker gets results of its own.

    Raises :class:`ValueError` with one line about what is wrong.
    """
    if not text:
        return None
    try:
        network = IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an IPv4 network: {error}") from None
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


def group_of(network: IPv4Network, job_number: int) -> IPv4Address:
    """The address of a job's results."""
    return network[job_number]
