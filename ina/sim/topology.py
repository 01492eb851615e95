"""Which nodes a virtual network has, and which cables between them.

Hosts have one cable. A switch runs the P4 program (``p4``) or only forwards (``plain``), or it is a
job's aggregator at the end of a cable. Cables have a :class:`Way` each way; numbers of ports follow
from the order of the cables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Address

from ina.fabric.graph import Fabric
from ina.fabric.ways import FAR, Ways
from ina.protocol.addresses import mac_of
from ina.sim.errors import ScenarioError
from ina.sim.ways import Way

FIRST_HOST = IPv4Address("10.0.0.1")
FIRST_SWITCH = IPv4Address("10.255.0.1")
SWITCH_KINDS = ("p4", "plain", "aggregator", "embedded")
"""``aggregator``: a soft switch that makes results of mode ``shared``; ``embedded``: so, and a rank
runs it in its own process. Both have one cable."""
USUAL = Way()
"""10 Gbit/s, 1 µs, and nothing goes wrong."""


@dataclass(frozen=True)
class Cable:
    """Between two nodes: ``there`` is from ``one`` to ``other``."""

    one: str
    other: str
    there: Way = USUAL
    back: Way = USUAL

    def __str__(self) -> str:
        return f"{self.one}-{self.other}"


@dataclass(frozen=True)
class Topology:
    """A graph. Raises :class:`ScenarioError` where it is none that can be built."""

    hosts: tuple[str, ...]
    switches: Mapping[str, str]
    """By name, of which kind."""
    cables: tuple[Cable, ...]
    addresses: Mapping[str, IPv4Address] = field(init=False)
    """Of hosts and switches."""

    def __post_init__(self) -> None:
        names = [*self.hosts, *self.switches]
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise ScenarioError(f"topology: the name {twice[0]!r} is there twice")
        for name, kind in self.switches.items():
            if kind not in SWITCH_KINDS:
                raise ScenarioError(f"switch {name!r}: kind {kind!r} is none of {SWITCH_KINDS}")
        known = set(names)
        for cable in self.cables:
            for end in (cable.one, cable.other):
                if end not in known:
                    raise ScenarioError(f"cable {cable}: there is no node {end!r}")
            if cable.one == cable.other:
                raise ScenarioError(f"cable {cable}: it has one end only")
        for name in (*self.hosts, *self.of_kind("aggregator", "embedded")):
            count = len(self.neighbours[name])
            if count != 1:
                what = "host" if name in self.hosts else "aggregator"
                raise ScenarioError(f"{what} {name!r} has {count} cables: it must have one")
        addresses = {name: FIRST_HOST + i for i, name in enumerate(self.hosts)}
        addresses |= {name: FIRST_SWITCH + i for i, name in enumerate(self.switches)}
        object.__setattr__(self, "addresses", addresses)

    def of_kind(self, *kinds: str) -> list[str]:
        """Its switches that are one of these, in order."""
        return [name for name, kind in self.switches.items() if kind in kinds]

    @cached_property
    def neighbours(self) -> Mapping[str, Mapping[int, str]]:
        """By node: who is at the other end of each port."""
        found: dict[str, dict[int, str]] = {name: {} for name in (*self.hosts, *self.switches)}
        for cable in self.cables:
            for here, there in ((cable.one, cable.other), (cable.other, cable.one)):
                found[here][len(found[here]) + 1] = there
        return found

    def with_ends(self, ends: Sequence[tuple[str, str, Cable]]) -> Topology:
        """And switches at its edge: names, kinds and their cables."""
        if not ends:
            return self
        kinds = {name: kind for name, kind, _ in ends}
        if twice := [name for name in kinds if name in self.switches or len(kinds) < len(ends)]:
            raise ScenarioError(f"topology: the name {twice[0]!r} is there twice")
        cables = tuple(cable for _, _, cable in ends)
        return Topology(self.hosts, {**self.switches, **kinds}, (*self.cables, *cables))

    def ports(self) -> Iterator[tuple[Cable, int, int]]:
        """Each cable with the numbers of its ports at both ends, from 1."""
        used: Counter[str] = Counter()
        for cable in self.cables:
            used[cable.one] += 1
            used[cable.other] += 1
            yield cable, used[cable.one], used[cable.other]

    def ways_from(self, node: str) -> Mapping[int, tuple[Way, str]]:
        """By port: the way that begins there, and the node at its end."""
        return self._ways_from[node]

    @cached_property
    def _ways_from(self) -> Mapping[str, Mapping[int, tuple[Way, str]]]:
        found: dict[str, dict[int, tuple[Way, str]]] = {name: {} for name in self.neighbours}
        for cable, port, other_port in self.ports():
            found[cable.one][port] = (cable.there, cable.other)
            found[cable.other][other_port] = (cable.back, cable.one)
        return found

    def switch_of(self, host: str) -> str:
        """What its cable ends at."""
        return self.neighbours[host][1]

    def port_towards(self, switch: str, host: str) -> int:
        """The first of the ports of a switch that are nearest to a host."""
        return self.routes(host)[switch][0]

    def routes(self, to: str) -> Mapping[str, Sequence[int]]:
        """By switch: the ports that lead to a node by as few cables as possible.

        Switches from where no way leads there are left out. Hosts forward nothing.
        """
        if to in self.switches:
            return self._routes_to(to)
        last = self.switch_of(to)
        if last not in self.switches:
            return {}
        # As to its switch, whatever the host: a thousand hosts have a hundred of them.
        return {**self._routes_to(last), last: [self._port_of[to]]}

    def _routes_to(self, to: str) -> Mapping[str, Sequence[int]]:
        if to not in self._routes:
            hops = self.ways.hops[self._number[to]]
            self._routes[to] = {
                switch: [
                    port
                    for port, there in self.neighbours[switch].items()
                    if there in self.switches
                    and hops[self._number[there]] == hops[self._number[switch]] - 1
                ]
                for switch in self.switches
                if 0 < hops[self._number[switch]] < FAR
            }
        return self._routes[to]

    @cached_property
    def _routes(self) -> dict[str, Mapping[str, Sequence[int]]]:
        return {}

    def nearest(self, host: str, kind: str) -> str:
        """The switch of a kind that is nearest to a host, and comes first; empty: there is none."""
        at = self.switch_of(host)
        if at not in self.switches:
            return ""
        hops = self.ways.hops[self._number[at]]
        near = min(self.of_kind(kind), key=lambda it: hops[self._number[it]], default="")
        return near if near and hops[self._number[near]] < FAR else ""

    @cached_property
    def ways(self) -> Ways:
        """Between switches, by their numbers."""
        joined: dict[tuple[int, int], int] = {}
        for number, cable in enumerate(self.cables):
            if cable.one in self.switches and cable.other in self.switches:
                one, other = self._number[cable.one], self._number[cable.other]
                joined[other, one] = joined.setdefault((one, other), number)
        return Ways(len(self.switches), joined)

    @cached_property
    def _number(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.switches)}

    @cached_property
    def _port_of(self) -> Mapping[str, int]:
        """By host: the port at the other end of its cable."""
        ends = [
            (name, port)
            for cable, one_port, other_port in self.ports()
            for name, port in ((cable.one, other_port), (cable.other, one_port))
        ]
        return {name: port for name, port in ends if name not in self.switches}

    def mac(self, name: str) -> int:
        """Of a node, as the soft switch's UDP ports derive it from its address."""
        return mac_of(self.addresses[name])


def laid(
    fabric: Fabric,
    way: Way = USUAL,
    back: Way | None = None,
    up: Way | None = None,
    *,
    edge: str = "p4",
    above: str = "plain",
) -> Topology:
    """A fabric as nodes and cables; hosts are ``h1`` ..., and ports have the fabric's numbers.

    ``way``: from each host; ``back``: to it; ``up``: between switches. ``edge``: of which kind
    switches are that have hosts; ``above``: others.
    """
    hosts = [f"h{number}" for number in range(1, len(fabric.hosts) + 1)]
    tops = [place.switch for place in fabric.hosts.values()]
    cables = [Cable(host, top, way, back or way) for host, top in zip(hosts, tops, strict=True)]
    cables += [Cable(*link.switches, up or way, up or way) for link in fabric.links]
    kinds = {name: edge if name in tops else above for name in fabric.switches}
    return Topology(tuple(hosts), kinds, tuple(cables))
