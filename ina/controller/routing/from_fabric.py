"""A fabric, with what is up and free, as the arrays that policies plan over. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from ina.controller.routing.network import NO_LIMIT, Network
from ina.fabric.graph import Fabric
from ina.fabric.outages import NOTHING, Down

USUAL_BITS_PER_S = 10e9
"""Of links where the rate of none is known."""


@dataclass(frozen=True)
class Rooms:
    """Of a fabric's switches, by name; what is not said is not limited."""

    free: Mapping[str, int] = field(default_factory=dict)
    """Slots."""
    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    """Of contributions that each sums in a second."""
    forwarding: frozenset[str] = frozenset()
    """Those that sum nothing."""


def network_of(
    fabric: Fabric,
    rooms: Rooms | None = None,
    down: Down = NOTHING,
    more_hosts: Iterable[tuple[str, str]] = (),
) -> Network:
    """Of a link without a rate it is the highest that any has. ``more_hosts``: by name and top of
    rack, such as share memory with a switch."""
    rooms = rooms or Rooms()
    known = [link.rate_bits_per_s for link in fabric.links if link.rate_bits_per_s]
    usual = max(known, default=USUAL_BITS_PER_S)
    links = [fabric.link(*link.switches) for link in fabric.links]
    once = {frozenset(link.switches): link for link in links}  # a second cable is no other way
    network = Network.of(
        fabric.switches,
        [(*link.switches, (link.rate_bits_per_s or usual) / 8) for link in once.values()],
        [
            *(
                (str(address), place.switch, place.rate_bits_per_s / 8 or inf)
                for address, place in fabric.hosts.items()
            ),
            *((name, switch, inf) for name, switch in more_hosts),
        ],
    )
    network = replace(network, forwards=fabric.next_hops)
    for number, name in enumerate(fabric.switches):
        network.slots[number] = rooms.free.get(name, NO_LIMIT)
        network.processing[number] = rooms.bytes_per_s.get(name, inf)
        network.sums[number] = name not in rooms.forwarding
    return with_down(network, down)


def with_down(network: Network, down: Down) -> Network:
    """Of a fabric's, with this down, too; what it has not is no matter."""
    cables = [
        number
        for number, (a, b) in enumerate(network.ends.tolist())
        if frozenset((network.names[a], network.names[b])) in down.links
    ]
    places = [number for number, name in enumerate(network.names) if name in down.switches]
    return network.without(cables, places) if cables or places else network


def hosts_of(network: Network) -> Mapping[str, int]:
    """Their numbers, by name."""
    return {name: number for number, name in enumerate(network.host_names)}
