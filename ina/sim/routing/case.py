"""One network with jobs on it, for every policy alike. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.network import NO_LIMIT, Network


@dataclass(frozen=True, eq=False)
class Setting:
    """Rates are in units of a host's cable, sizes in what it carries in a second. What other
    traffic takes is off the rates."""

    name: str
    network: Network
    demands: tuple[Demand, ...]
    late: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By job, the ranks whose gradients come late: a switch that does not wait for them has sent
    on what it had."""


def with_servers(network: Network, tops: list[int], rate: float = 1.0) -> tuple[Network, list[int]]:
    """Servers, each behind one of these tops of rack, as places that can make results.

    Returns the network with them, and their numbers.
    """
    first = len(network)
    count = len(tops)
    ends = np.array([[top, first + at] for at, top in enumerate(tops)], dtype=np.int64)
    grown = replace(
        network,
        names=(*network.names, *(f"server{at}" for at in range(count))),
        ends=np.concatenate([network.ends, ends.reshape(count, 2)]),
        rates=np.concatenate([network.rates, np.full(count, rate)]),
        sums=np.concatenate([network.sums, np.ones(count, dtype=np.bool_)]),
        processing=np.concatenate([network.processing, np.full(count, np.inf)]),
        slots=np.concatenate([network.slots, np.full(count, NO_LIMIT, dtype=np.int64)]),
        most_children=1 << 20,  # a server adds up as many as come
    )
    return grown, list(range(first, first + count))
