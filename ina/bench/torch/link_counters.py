"""What a rank's link has carried, as its token buckets count it: with the headers of each packet.

An interface counts a super-packet (GSO) with one header, however many packets it stands for.
"""

from __future__ import annotations

from ina import netns
from ina.bench.collective_kinds import LinkBytes
from ina.emulate.wiring import DATA_INTERFACE


class LinkCounters:
    """Both ends of this namespace's link: each counts what it sends."""

    def __init__(self, net: str) -> None:
        """``net``: the namespace of the other end. Raises :class:`~ina.netns.NetnsError`."""
        self._ends = netns.End(None, DATA_INTERFACE), netns.other_end(DATA_INTERFACE, net)

    def read(self) -> LinkBytes:
        """Since the link is up. Raises :class:`~ina.netns.NetnsError`."""
        sent, received = map(netns.shaped_bytes, self._ends)
        return LinkBytes(float(sent), float(received))
