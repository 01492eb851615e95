"""What a switch forwards of traffic that is not ours: written before the controller comes."""

from __future__ import annotations

from dataclasses import dataclass, field

from ina.p4 import names
from ina.tables.values import AnyItem, DefaultAction, Entry, Group

FLOOD_GROUP = 1


@dataclass(frozen=True)
class Route:
    """Where packets to a prefix go, and the addresses of the hop."""

    prefix: str
    port: int
    src_mac: str
    dst_mac: str


@dataclass(frozen=True)
class Forwarding:
    """What a switch shall know."""

    flood: tuple[int, ...] = ()
    """Where frames to unknown addresses go; none: they are dropped."""
    macs: dict[str, int] = field(default_factory=dict)
    """Ports by MAC address."""
    router_mac: str = ""
    """Frames to this one are routed."""
    routes: tuple[Route, ...] = ()

    def items(self) -> list[AnyItem]:
        """What to insert."""
        found: list[AnyItem] = [
            Entry(names.DMAC, (("dst_mac", _number(mac)),), names.FORWARD, (("port", port),))
            for mac, port in self.macs.items()
        ]
        if self.router_mac:
            match = (("dst_mac", _number(self.router_mac)),)
            found.append(Entry(names.ROUTER_MACS, match, names.NO_ACTION))
        for route in self.routes:
            hop = (("src_mac", _number(route.src_mac)), ("dst_mac", _number(route.dst_mac)))
            params = (("port", route.port), *hop)
            found.append(Entry(names.IPV4_LPM, (("dst_addr", route.prefix),), names.ROUTE, params))
        if self.flood:
            copies = tuple((port, rid) for rid, port in enumerate(self.flood, 1))
            found.append(Group(FLOOD_GROUP, copies))
            found.append(DefaultAction(names.DMAC, names.FLOOD, (("group", FLOOD_GROUP),)))
        return found


def _number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)
