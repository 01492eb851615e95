"""What became of TCP flows: when each was done, beside when it could have been at best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ina.sim.errors import ScenarioError
from ina.sim.topology import Topology
from ina.sim.ways import Way

SIZE_EDGES_BYTES = (10_000, 100_000, 1_000_000, 10_000_000)


@dataclass(frozen=True)
class Completion:
    """A flow that has ended."""

    number: int
    """In the order of their beginnings."""
    source: str
    destination: str
    size_bytes: int
    started_ns: int
    done_ns: int | None
    """The receiver had the last byte; None: it was given up after timeouts."""
    ideal_ns: int
    """How long it takes at least, alone and with windows without end."""
    segments: int
    retransmissions: int
    timeouts: int
    marked_packets: int

    @property
    def duration_ns(self) -> int | None:
        """From its beginning to its last byte."""
        return None if self.done_ns is None else self.done_ns - self.started_ns

    @property
    def slowdown(self) -> float | None:
        """How many times as long as at best; 1 or more."""
        return None if self.duration_ns is None else self.duration_ns / self.ideal_ns


@dataclass(frozen=True)
class Slowdowns:
    """Of the flows of some sizes."""

    least_bytes: int
    """Longer than this,"""
    most_bytes: int | None
    """and no longer than this; None: without end."""
    flows: int
    """That were done."""
    given_up: int
    mean: float
    p50: float
    p95: float
    p99: float


def slowdowns(
    completions: Iterable[Completion], edges_bytes: Sequence[int] = SIZE_EDGES_BYTES
) -> list[Slowdowns]:
    """By size: a row for each piece between ``edges_bytes`` in which there are flows."""
    rows = []
    flows = list(completions)
    for least, most in zip((0, *edges_bytes), (*edges_bytes, None), strict=True):
        here = [
            flow
            for flow in flows
            if flow.size_bytes > least and flow.size_bytes <= (most or math.inf)
        ]
        if not here:
            continue
        found = sorted(flow.slowdown for flow in here if flow.slowdown is not None)
        rows.append(
            Slowdowns(
                least_bytes=least,
                most_bytes=most,
                flows=len(found),
                given_up=len(here) - len(found),
                mean=math.fsum(found) / len(found) if found else math.nan,
                p50=percentile(found, 50),
                p95=percentile(found, 95),
                p99=percentile(found, 99),
            )
        )
    return rows


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Of values in order, the nearest rank: the least that so many percent do not exceed.

    Not a number where there are none.
    """
    if not ordered:
        return math.nan
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


def ideal_ns(ways: Sequence[Way], size_bytes: int, mss_bytes: int, header_bytes: int) -> int:
    """How long data takes on its way at least: segments one behind the other, each forwarded once
    it is there as a whole. ``header_bytes``: of a segment's frame, without the links' gaps."""
    segments = -(-size_bytes // mss_bytes)
    last_bytes = size_bytes - (segments - 1) * mss_bytes
    others_ns = 0.0  # when the segment before the last has left each way
    slowest_ns = 0.0
    last_ns = 0.0
    for way in ways:
        bit_ns = 1e9 / way.bits_per_s if way.bits_per_s else 0.0
        overhead_bytes = header_bytes + way.wire_gap_bytes
        full_ns = (mss_bytes + overhead_bytes) * 8 * bit_ns
        others_ns += full_ns
        slowest_ns = max(slowest_ns, full_ns)
        free_ns = others_ns + (segments - 2) * slowest_ns if segments > 1 else 0.0
        last_ns = max(last_ns, free_ns) + (last_bytes + overhead_bytes) * 8 * bit_ns
    return max(int(last_ns) + sum(way.delay_ns for way in ways), 1)


def path(topology: Topology, source: str, destination: str) -> list[Way]:
    """One of the shortest. Raises :class:`ScenarioError`: there is none."""
    routes = topology.routes(destination)
    way, node = topology.ways_from(source)[1]
    ways = [way]
    while node != destination:
        if not routes.get(node):
            raise ScenarioError(f"no way leads from {source} to {destination}")
        way, node = topology.ways_from(node)[routes[node][0]]
        ways.append(way)
    return ways
