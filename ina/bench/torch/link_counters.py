"""What a rank's link has carried, as its token buckets count it: with the headers of each packet.

An interface counts a super-packet (GSO) with one header, however many packets it stands for.
"""

from __future__ import annotations

import json
from typing import Any

from ina.bench.collective_kinds import LinkBytes
from ina.emulate.wiring import DATA_INTERFACE
from ina.netns import command


class LinkCounters:
    """Both ends of this namespace's link: each counts what it sends."""

    def __init__(self, net: str) -> None:
        """``net``: the namespace of the other end. Raises :class:`~ina.netns.NetnsError`."""
        (own,) = _shown("ip", "-j", "link", "show", "dev", DATA_INTERFACE)
        others = _shown("ip", "-n", net, "-j", "link", "show")
        self._net = net
        (self._port,) = (it["ifname"] for it in others if it["ifindex"] == own["link_index"])

    def read(self) -> LinkBytes:
        """Since the link is up. Raises :class:`~ina.netns.NetnsError`."""
        return LinkBytes(_bytes(DATA_INTERFACE), _bytes(self._port, "-n", self._net))


def _bytes(interface: str, *where: str) -> float:
    shown = _shown("tc", *where, "-s", "-j", "qdisc", "show", "dev", interface)
    return float(sum(it["bytes"] for it in shown if it["kind"] == "tbf"))


def _shown(*arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(command(*arguments))
    return found
