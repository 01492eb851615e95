"""For how long a cell is simulated: round trips enough, and no more packets than there is time."""

from __future__ import annotations

from dataclasses import dataclass

from ina.sim.windows.network import Net

_WARM_ROUND_TRIPS, _MEASURED_ROUND_TRIPS = 100, 200
_LEAST_WARM_S, _LEAST_MEASURED_S = 5e-3, 10e-3
"""Algorithms count in milliseconds, too."""
_MOST_HOPS = 1e6
"""Packets at links, of a run."""
_FEWEST_ROUND_TRIPS = 90
_LOOKS_A_ROUND_TRIP = 4
_MOST_LOOKS = 3000


READY_MS = 110.0
"""When jobs and flows come that are not there from the beginning, in virtual time: the controller
has the switches at 100 ms, and a job's workers join in some two."""


@dataclass(frozen=True)
class Timing:
    """Of one run, since its first packet."""

    warm_s: float
    """Until then nothing is measured: a window has to find its size."""
    total_s: float
    every_s: float
    """From look to look."""


def timing(net: Net, hops: int, *, round_trips: float = 1.0) -> Timing:
    """``hops``: links that a packet and its copies cross. ``round_trips``: of the usual number."""
    warm_s = max(round_trips * _WARM_ROUND_TRIPS * net.base_s, _LEAST_WARM_S)
    total_s = warm_s + max(round_trips * _MEASURED_ROUND_TRIPS * net.base_s, _LEAST_MEASURED_S)
    most_s = max(_MOST_HOPS * net.frame_s / hops, _FEWEST_ROUND_TRIPS * net.base_s)
    if total_s > most_s:
        warm_s, total_s = warm_s * most_s / total_s, most_s
    every_s = max(net.base_s / _LOOKS_A_ROUND_TRIP, total_s / _MOST_LOOKS)
    return Timing(warm_s, total_s, every_s)
