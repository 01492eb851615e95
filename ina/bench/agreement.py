"""The same star twice, in namespaces and in virtual time: what both did, and how far they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ina.bench.spread import spread
from ina.sim.scenario import Dtype

GOODPUT_BOUND = 0.05
"""So much of the real goodput the simulated one may differ by."""
RESENDS_BOUND = 2.0
"""So many times more, or fewer, packets may be sent again."""
TOO_FEW = 20
"""With fewer packets sent again on both sides, chance says more than the model."""

Verdict = Literal["yes", "no", "too few"]


@dataclass(frozen=True)
class AgreementCase:
    """What is the same on both sides."""

    link: str
    rate_bit_s: float
    queue_bytes: int
    """At each end of a link."""
    burst_bytes: int
    """Of each end's token bucket."""
    algorithm: str
    """The window's."""
    dtype: Dtype
    elems: int
    tensor_bytes: int
    values: int
    """A packet."""
    rounds: int
    steps: int
    """Of a round; each reduces one tensor."""
    seed: int

    @property
    def all_steps(self) -> int:
        """With the first one, which is not counted."""
        return 1 + self.rounds * self.steps


@dataclass(frozen=True)
class Costs:
    """What the machine needs, as it was measured with two workers, without loss."""

    worker_packet_ns: float
    """CPU time of a worker's thread, for each packet that it sends or receives."""
    switch_packet_ns: float
    """The same of the switch's."""
    wake_us: float
    """Until a thread that sleeps is at work, at least. Of lone packets' sums, beside those costs:
    threads wake each other, each after this time,"""
    wake_jitter_us: float
    """and on average so much more, exponentially."""


@dataclass(frozen=True)
class SideRun:
    """Of one side."""

    seconds: float
    """In which rank 0 reduced."""
    sent: int
    """Packets, all ranks', as the rest."""
    resends: int
    """Sent again; the next three: what became of them, once it is known."""
    lost: int
    overtaken: int
    probes: int


@dataclass(frozen=True)
class Side:
    """All rounds of one side."""

    goodput_mbit_s: float
    """Of a worker's tensors: median of the rounds."""
    low_mbit_s: float
    """First quartile."""
    high_mbit_s: float
    sent: int
    """All rounds', as the rest."""
    resends: int
    lost: int
    overtaken: int
    probes: int
    wrong: int
    """Sums."""
    in_flight_limit: int
    """Packets, of a worker at the end."""


@dataclass(frozen=True)
class Agreement:
    """One number of workers, and one loss."""

    workers: int
    loss: float
    """Of each packet, at the switch's ports, in each direction."""
    apart_s: float
    """So far apart the ranks began, from the first to the last."""
    real: Side
    sim: Side
    goodput_ratio: float
    """Simulated over real, as all of these."""
    goodput_holds: bool
    resends_ratio: float | None
    """None: too few."""
    resends_hold: Verdict
    lost_ratio: float | None
    overtaken_ratio: float | None
    probes_ratio: float | None
    load: float
    """Of the machine in the last minute, when the real side was done."""


def side(rounds: Sequence[SideRun], case: AgreementCase, wrong: int, in_flight_limit: int) -> Side:
    """What rounds come to; one or more."""
    bits = 8 * case.tensor_bytes * case.steps
    found = spread([bits / one.seconds / 1e6 for one in rounds])
    return Side(
        goodput_mbit_s=found.median,
        low_mbit_s=found.low,
        high_mbit_s=found.high,
        sent=sum(one.sent for one in rounds),
        resends=sum(one.resends for one in rounds),
        lost=sum(one.lost for one in rounds),
        overtaken=sum(one.overtaken for one in rounds),
        probes=sum(one.probes for one in rounds),
        wrong=wrong,
        in_flight_limit=in_flight_limit,
    )


def agreement(
    workers: int, loss: float, apart_s: float, real: Side, sim: Side, load: float
) -> Agreement:
    """Both sides, judged."""
    goodput = sim.goodput_mbit_s / real.goodput_mbit_s
    resends = _ratio(real.resends, sim.resends)
    holds: Verdict = "too few"
    if resends is not None:
        holds = "yes" if 1 / RESENDS_BOUND <= resends <= RESENDS_BOUND else "no"
    return Agreement(
        workers=workers,
        loss=loss,
        apart_s=apart_s,
        real=real,
        sim=sim,
        goodput_ratio=goodput,
        goodput_holds=abs(goodput - 1) <= GOODPUT_BOUND,
        resends_ratio=resends,
        resends_hold=holds,
        lost_ratio=_ratio(real.lost, sim.lost),
        overtaken_ratio=_ratio(real.overtaken, sim.overtaken),
        probes_ratio=_ratio(real.probes, sim.probes),
        load=load,
    )


def _ratio(real: int, sim: int) -> float | None:
    """None where both are too few; where only one is 0, the other counts as if it were 1."""
    if max(real, sim) < TOO_FEW:
        return None
    return max(sim, 1) / max(real, 1)
