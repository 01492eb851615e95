"""What a job wants of the network. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ina.controller.routing.network import Bools, Ints, Network

DEFAULT_STRIPES = 8


@dataclass(frozen=True)
class Demand:
    """Of one job."""

    name: str
    hosts: tuple[int, ...]
    """By rank: the host, as the network numbers it."""
    step_bytes: float = 1.0
    """That each worker sends, and receives, a step."""
    compute_s: float = 0.0
    """Of a step, beside communication; 0: not known."""
    overlap_s: float = 0.0
    """So much of its communication hides behind that."""
    slots: int = 0
    """That it takes at a place that sums all its lanes; 0: none are counted."""
    stripes: int = DEFAULT_STRIPES
    """Parts that its lanes can be dealt in: a power of two, at most 16."""
    server: int | None = None
    """The place that makes its results, where a policy wants one; None: that of rank 0's rack."""
    roots: tuple[int, ...] | None = None
    """Places that may make its results, or be below what does; None: any that sums."""
    levels_beside: int = 0
    """Of its trees that are no places: nodes on hosts of workers, an aggregator above."""
    sub_models: tuple[float, ...] = field(default=())
    """Relative sizes of the parts that policy ``goat`` places; empty: ``stripes`` equal ones."""

    def __len__(self) -> int:
        return len(self.hosts)

    @cached_property
    def _hosts(self) -> Ints:
        return np.array(self.hosts, dtype=np.int64)

    def places(self, network: Network) -> Ints:
        """By rank: the top of rack."""
        places: Ints = network.host_places[self._hosts]
        return places

    def racks(self, network: Network) -> tuple[Ints, Ints]:
        """Tops of racks with workers, and how many each has."""
        racks, counts = np.unique(self.places(network), return_counts=True)
        return racks, counts

    def root(self, network: Network) -> int:
        """Where results are made by policies that know of one place for that."""
        return int(self.places(network)[0]) if self.server is None else self.server

    def most_levels(self, network: Network) -> int:
        """Of places in one of its trees."""
        return network.most_levels - self.levels_beside

    def may_be_root(self, sums: Bools) -> Ints:
        """Of places that sum, those that may make its results."""
        roots: Ints = np.flatnonzero(sums)
        return roots if self.roots is None else np.intersect1d(roots, self.roots)

    def training_s(self, communication_s: float) -> float:
        """A step, of which communication takes so long."""
        return self.compute_s + max(0.0, communication_s - self.overlap_s)
