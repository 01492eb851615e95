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


def star(hosts: int, way: Way = USUAL, back: Way | None = None) -> Topology:
    """Hosts around one switch, ``s1``. ``way``: from each host; ``back``: to it."""
    names = tuple(f"h{i + 1}" for i in range(hosts))
    cables = tuple(Cable(name, "s1", way, back or way) for name in names)
    return Topology(names, {"s1": "p4"}, cables)


def leaf_spine(
    leaves: int, spines: int, hosts: int, way: Way = USUAL, up: Way | None = None,
    leaf_kind: str = "p4", spine_kind: str = "plain",
) -> Topology:  # fmt: skip
    """``hosts`` at each leaf; each leaf has a cable (``up``) to each spine."""
    switches = {f"l{i + 1}": leaf_kind for i in range(leaves)}
    switches |= {f"s{i + 1}": spine_kind for i in range(spines)}
    names = [(f"h{i + 1}", f"l{i // hosts + 1}") for i in range(leaves * hosts)]
    cables = [Cable(host, leaf, way, way) for host, leaf in names]
    between = up or way
    for i in range(leaves):
        cables += [Cable(f"l{i + 1}", f"s{j + 1}", between, between) for j in range(spines)]
    return Topology(tuple(host for host, _ in names), switches, tuple(cables))


def racks(
    hosts: Sequence[int], pod: int, way: Way = USUAL, up: Way | None = None
) -> Topology:  # fmt: skip
    """A tree of P4 switches: leaves ``l1`` ... with so many hosts each, below one root, ``s1``.

    ``pod``: so many leaves, or fewer, are below a switch ``a1`` ... of their own; 0: no such level.
    ``up``: between switches.
    """
    between = up or way
    switches = {f"l{leaf + 1}": "p4" for leaf in range(len(hosts))}
    names: list[str] = []
    cables: list[Cable] = []
    for leaf, count in enumerate(hosts):
        here = [f"h{len(names) + i + 1}" for i in range(count)]
        names += here
        cables += [Cable(host, f"l{leaf + 1}", way, way) for host in here]
    below = list(switches)
    if pod:
        above = [f"a{leaf // pod + 1}" for leaf in range(len(hosts))]
        cables += [
            Cable(leaf, top, between, between) for leaf, top in zip(below, above, strict=True)
        ]
        below = list(dict.fromkeys(above))
        switches |= dict.fromkeys(below, "p4")
    cables += [Cable(name, "s1", between, between) for name in below]
    return Topology(tuple(names), {**switches, "s1": "p4"}, tuple(cables))


def fat_tree(k: int, way: Way = USUAL, edge_kind: str = "p4", kind: str = "plain") -> Topology:
    """Of switches with ``k`` ports, an even number (Al-Fares, SIGCOMM 2008): k³/4 hosts."""
    if k < 2 or k % 2:
        raise ScenarioError(f"fat-tree of {k}: want an even number of ports")
    half = k // 2
    switches: dict[str, str] = {}
    hosts: list[str] = []
    cables: list[Cable] = []
    for pod in range(k):
        for edge in range(half):
            name = f"e{pod + 1}_{edge + 1}"
            switches[name] = edge_kind
            for _ in range(half):
                hosts.append(f"h{len(hosts) + 1}")
                cables.append(Cable(hosts[-1], name, way, way))
        for upper in range(half):
            name = f"a{pod + 1}_{upper + 1}"
            switches[name] = kind
            cables += [Cable(f"e{pod + 1}_{edge + 1}", name, way, way) for edge in range(half)]
    for upper in range(half):
        for core in range(half):
            name = f"c{upper + 1}_{core + 1}"
            switches[name] = kind
            cables += [Cable(f"a{pod + 1}_{upper + 1}", name, way, way) for pod in range(k)]
    return Topology(tuple(hosts), switches, tuple(cables))
