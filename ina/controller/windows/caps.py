"""How many packets jobs may have in flight where they share: the interface, all there are, and the
max-min shares that one of them goes by.

They are pure: neither state, clock nor I/O.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from ina.controller.config.rules import WindowsConfig
from ina.controller.windows.uses import OwnSlots, Thing

J = TypeVar("J", bound=Hashable)
R = TypeVar("R", bound=Hashable)


@dataclass(frozen=True)
class Demand(Generic[R]):
    """What one job would have."""

    weight: float
    """More than 0."""
    uses: Mapping[R, float]
    """Of each thing, what a rate of 1 takes of its capacity; more than 0."""


@dataclass(frozen=True)
class Share(Generic[R]):
    """What one job gets."""

    rate: float
    """Infinite where nothing that it uses is limited."""
    bottleneck: R | None
    """What limits it; None: nothing."""


def max_min(demands: Mapping[J, Demand[R]], capacities: Mapping[R, float]) -> dict[J, Share[R]]:
    """By job. What is not in ``capacities`` has no limit.

    All grow alike, for their weights, until something is used up: its users have their share then,
    and the others grow on. Of several at once the one that is first in ``capacities`` counts.
    """
    left = dict(capacities)
    growing = dict(demands)
    found: dict[J, Share[R]] = {}
    while growing:
        levels = {thing: _level(left[thing], thing, growing) for thing in left}
        tightest = min(levels, key=lambda thing: levels[thing], default=None)
        if tightest is None or levels[tightest] == math.inf:
            break
        for job in [job for job, it in growing.items() if tightest in it.uses]:
            demand = growing.pop(job)
            rate = demand.weight * levels[tightest]
            found[job] = Share(rate, tightest)
            for thing, part in demand.uses.items():
                if thing in left:
                    left[thing] = max(0.0, left[thing] - part * rate)
    found.update({job: Share(math.inf, None) for job in growing})
    return {job: found[job] for job in demands}


def _level(left: float, thing: R, growing: Mapping[J, Demand[R]]) -> float:
    """The rate of a weight of 1 at which those that still grow have used up what is left."""
    slope = sum(it.weight * it.uses.get(thing, 0.0) for it in growing.values())
    return left / slope if slope > 0 else math.inf


@dataclass(frozen=True)
class Use:
    """What a job that runs uses."""

    job: str
    weight: float
    links: Mapping[Thing, float]
    """Of each bit/s of a rank's packets, the bit/s of each direction of a link."""
    slots: Mapping[Thing, float]
    """And the packets in flight; empty: no round trip is known."""
    window: int
    """W, packets."""
    packet_bits: int
    """As a packet takes a cable's time."""
    round_trip_s: float
    """The longest of its ranks' shortest; 0: not known."""


@dataclass(frozen=True)
class Cap:
    """What a job gets."""

    most_packets: int = 0
    """In flight, of a worker; 0: no limit but its windows'."""
    share_bits_per_s: float = 0.0
    """Of a rank's packets, each way; 0: none computed, or nothing limits it."""
    bottleneck: Thing | None = None
    """What that share is limited by."""


class Caps(Protocol):
    """Says how many packets the workers of each job may have in flight."""

    name: ClassVar[str]
    """As the configuration has it."""
    goes_by_uses: ClassVar[bool]
    """Else nobody need find out what jobs use: it is asked of no job."""

    def caps(self, jobs: Sequence[Use], capacities: Mapping[Thing, float]) -> dict[str, Cap]:
        """By job, of all that run. ``capacities``: bit/s of links, packets of slots."""
        ...


class NoCaps:
    """The windows' algorithms alone."""

    name: ClassVar[str] = "none"
    goes_by_uses: ClassVar[bool] = False

    def __init__(self, config: WindowsConfig) -> None:
        pass

    def caps(self, jobs: Sequence[Use], capacities: Mapping[Thing, float]) -> dict[str, Cap]:
        """None."""
        return {use.job: Cap() for use in jobs}


class MaxMinCaps:
    """What each job's weighted max-min share takes in a round trip, times ``slack``.

    Only a job that shares its bottleneck is capped: who is alone there takes from nobody.
    """

    name: ClassVar[str] = "max-min"
    goes_by_uses: ClassVar[bool] = True

    def __init__(self, config: WindowsConfig) -> None:
        self._config = config

    def caps(self, jobs: Sequence[Use], capacities: Mapping[Thing, float]) -> dict[str, Cap]:
        """See above."""
        own: dict[Thing, float] = {OwnSlots(use.job): float(use.window) for use in jobs}
        limits = {**capacities, **own}
        shares = max_min(
            {use.job: Demand(use.weight, {**use.links, **use.slots}) for use in jobs}, limits
        )
        users = Counter(thing for use in jobs for thing in (*use.links, *use.slots))
        return {
            use.job: self._cap(use, shares[use.job], users[shares[use.job].bottleneck])  # type: ignore[index]
            for use in jobs
        }

    def _cap(self, use: Use, share: Share[Thing], users: int) -> Cap:
        if share.bottleneck is None:
            return Cap()
        cap = Cap(0, share.rate, share.bottleneck)
        if users < 2 or not use.round_trip_s:
            return cap
        packets = math.ceil(self._config.slack * share.rate * use.round_trip_s / use.packet_bits)
        packets = max(packets, self._config.least_packets)
        return Cap(packets if packets < use.window else 0, share.rate, share.bottleneck)


CAPS: dict[str, type[NoCaps | MaxMinCaps]] = {it.name: it for it in (NoCaps, MaxMinCaps)}
"""By the names that the configuration has for them."""


def caps_for(config: WindowsConfig) -> Caps:
    """What the configuration names."""
    return CAPS[config.caps](config)
