"""How far the simulator's dumbbell and the one of namespaces agree."""

from __future__ import annotations

from dataclasses import dataclass

from ina.bench.agreement import GOODPUT_BOUND, Verdict
from ina.bench.windows import WindowRow
from ina.bench.windows_sim import Simulated

FACTOR = 2.0
"""So many times more, or fewer, packets may be marked or dropped."""
_TOO_FEW = 1e-3
"""A smaller share of packets on both sides says more of chance than of the model."""


@dataclass(frozen=True)
class Agreement:
    """Ratios are simulated over real; None: too few on both sides, or nothing to compare."""

    goodput: float
    """Of all jobs together."""
    goodput_holds: bool
    tcp: float | None
    tcp_holds: bool | None
    marked: float | None
    marked_holds: Verdict
    dropped: float | None
    dropped_holds: Verdict


def agreement(real: WindowRow, sim: Simulated) -> Agreement:
    """Both sides of one case, judged."""
    goodput = sum(sim.jobs_mbit_s) / sum(real.jobs_mbit_s)
    tcp = None
    if real.tcp is not None and sim.tcp_mbit_s is not None:
        tcp = sim.tcp_mbit_s / real.tcp.median
    marked, marked_holds = _shares(real.marked_share, sim.marked_share)
    dropped, dropped_holds = _shares(real.dropped_share or 0.0, sim.dropped_share)
    return Agreement(
        goodput=goodput,
        goodput_holds=abs(goodput - 1) <= GOODPUT_BOUND,
        tcp=tcp,
        tcp_holds=None if tcp is None else abs(tcp - 1) <= GOODPUT_BOUND,
        marked=marked,
        marked_holds=marked_holds,
        dropped=dropped,
        dropped_holds=dropped_holds,
    )


def _shares(real: float, sim: float) -> tuple[float | None, Verdict]:
    """Where only one is next to nothing, it counts as the most that is too few."""
    if max(real, sim) < _TOO_FEW:
        return None, "too few"
    ratio = max(sim, _TOO_FEW) / max(real, _TOO_FEW)
    return ratio, "yes" if 1 / FACTOR <= ratio <= FACTOR else "no"
