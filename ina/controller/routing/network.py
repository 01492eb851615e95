"""What routing policies plan over: places, cables and hosts as arrays, and ways over them. Pure.

A *place* is where sums may be made or packets pass: a switch, or a server that makes results. Every
cable has its rate each way, and a tree loads both ways of it alike: what goes up as contributions
comes down as results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

import numpy as np
import numpy.typing as npt

from ina.fabric.graph import Fabric
from ina.fabric.outages import NOTHING, Down
from ina.fabric.ways import FAR, Ways
from ina.protocol.spec import MAX_LEVELS, MAX_WORKERS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NO_LIMIT = 1 << 40
"""Slots of a place that nobody counts."""


@dataclass(frozen=True, eq=False)
class Network:
    """Immutable: failures and what other jobs have make another one of it."""

    names: tuple[str, ...]
    """Of places."""
    ends: Ints
    """(cables, 2): the places that each joins."""
    rates: Floats
    """(cables,): bytes a second each way; 0: it is down."""
    sums: Bools
    """(places,): whether it may be a node of a tree; others forward."""
    processing: Floats
    """(places,): bytes of contributions that it takes a second; inf: as fast as its ports."""
    slots: Ints
    """(places,): free for jobs; :data:`NO_LIMIT`: nobody counts them."""
    host_names: tuple[str, ...]
    host_places: Ints
    """(hosts,): the place, a top of rack, that each is behind."""
    host_rates: Floats
    """(hosts,): bytes a second each way; inf: not known."""
    forwards: Ints | None = None
    """(places, places): towards the first, the place that the second sends frames to when all is
    up, where that is among the nearest; None: it is not known, or does not matter."""
    most_children: int = MAX_WORKERS
    """Of one node: the bits of its bitmap."""
    most_levels: int = MAX_LEVELS
    """Of nodes in a tree."""
    _index: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises :class:`ValueError`: arrays do not fit together, two places have one name."""
        places, cables, hosts = len(self.names), len(self.rates), len(self.host_names)
        for name, shape in (
            ("ends", (cables, 2)),
            ("sums", (places,)),
            ("processing", (places,)),
            ("slots", (places,)),
            ("host_places", (hosts,)),
            ("host_rates", (hosts,)),
        ):
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, want {shape}")
        index = {name: number for number, name in enumerate(self.names)}
        if len(index) != places:
            raise ValueError("two places have one name")
        object.__setattr__(self, "_index", index)

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        cables: Iterable[tuple[str, str, float]],
        hosts: Iterable[tuple[str, str, float]] = (),
    ) -> Network:
        """``cables`` and ``hosts`` with their rates in bytes a second; every place sums."""
        index = {name: number for number, name in enumerate(names)}
        joined, behind = list(cables), list(hosts)
        ends = [(index[a], index[b]) for a, b, _ in joined]
        places = len(names)
        return cls(
            tuple(names),
            np.array(ends, dtype=np.int64).reshape(len(ends), 2),
            np.array([rate for _, _, rate in joined], dtype=np.float64),
            np.ones(places, dtype=np.bool_),
            np.full(places, inf),
            np.full(places, NO_LIMIT, dtype=np.int64),
            tuple(name for name, _, _ in behind),
            np.array([index[place] for _, place, _ in behind], dtype=np.int64),
            np.array([rate for _, _, rate in behind], dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.names)

    def place(self, name: str) -> int:
        """Its number; raises :class:`KeyError`."""
        return self._index[name]

    @cached_property
    def is_up(self) -> Bools:
        """(cables,)."""
        return self.rates > 0

    @cached_property
    def cable_between(self) -> dict[tuple[int, int], int]:
        """By its ends, either way: the fastest that is up."""
        found: dict[tuple[int, int], int] = {}
        for cable in np.argsort(self.rates, kind="stable"):  # the fastest comes last
            if self.is_up[cable]:
                a, b = map(int, self.ends[cable])
                found[a, b] = found[b, a] = int(cable)
        return found

    def without(self, cables: Iterable[int] = (), places: Iterable[int] = ()) -> Network:
        """With these cables, and all of these places, down. Places keep their numbers."""
        rates, sums, gone = self.rates.copy(), self.sums.copy(), list(places)
        rates[list(cables)] = 0.0
        rates[np.isin(self.ends, gone).any(axis=1)] = 0.0
        sums[gone] = False
        return replace(self, rates=rates, sums=sums)

    def with_slots(self, slots: Ints) -> Network:
        """With other slots free."""
        return replace(self, slots=slots)


class NetworkWays(Ways):
    """Over the cables of a network that are up."""

    def __init__(self, network: Network, *, seed: int = 0) -> None:
        """``seed``: of which ways are preferred among equals."""
        super().__init__(len(network), network.cable_between)
        self.network = network
        self.seed = seed

    @property
    def towards(self) -> tuple[Ints, Ints]:
        """(roots, places) each: the next place from a place towards a root, and the cable there.

        -1: no way leads there, or it is there.
        """
        return self.variant(0)

    def variant(self, number: int) -> tuple[Ints, Ints]:
        """As :attr:`towards`, of the first; in others each place chooses among its nearest
        neighbours by itself, so that what is not summed on the way is spread over all of them.
        """
        if number not in self._variants:
            self._variants[number] = self.spread(
                np.random.default_rng((self.seed, number)),
                None if number else self.network.forwards,
                by_place=number > 0,
            )
        return self._variants[number]

    @cached_property
    def _variants(self) -> dict[int, tuple[Ints, Ints]]:
        return {}

    def way(self, start: int, end: int) -> tuple[int, ...]:
        """Places, both ends among them. Raises :class:`ValueError`: no way leads there."""
        if self.hops[start, end] >= FAR:
            names = self.network.names
            raise ValueError(f"no way leads from {names[start]} to {names[end]}")
        found, towards = [start], self.towards[0][end]
        while found[-1] != end:
            found.append(int(towards[found[-1]]))
        return tuple(found)


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
