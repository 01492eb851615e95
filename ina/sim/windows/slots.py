"""Two jobs on one pool of slots, one with a straggler: who gets the slots (A2TP, EuroSys 2023)?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ina.sim.scenario import (
    AggregatorSpec,
    FaultSpec,
    JobSpec,
    Scenario,
    SwitchSpec,
    TopologySpec,
)
from ina.sim.windows.cell import Cell, Family, Measured, Promise
from ina.sim.windows.history import History
from ina.sim.windows.measure import grown, loss_share, rate_gbit
from ina.sim.windows.network import ASKED, Limit, Net, limit
from ina.sim.windows.series import series_of
from ina.sim.windows.watch import Watch, observe

WORKERS = 4
"""Of each job."""
HEALTHY, LATE = "healthy", "late"
_WARM_S, _TOTAL_S = 4e-3, 9e-3


@dataclass(frozen=True, kw_only=True)
class Slots(Cell):
    """Jobs of mode ``shared``, each with an aggregator at a cable of its own."""

    shared: int
    """Slots that both claim."""
    slow_gbit: float
    """Of the link of the straggler."""
    total_s: float = _TOTAL_S
    """That a run takes, since its first packet."""

    @property
    def window(self) -> int:
        """W of each job, a power of two: it could claim all slots."""
        return 1 << (self.shared - 1).bit_length()

    @property
    def limit(self) -> Limit:
        """Of the healthy job."""
        return limit(self.net, self.window)

    def scenario(self, congestion: Mapping[str, object], names: list[str]) -> Scenario:
        """Of jobs of these names; the second one's last rank has a slow link."""
        slow = self.net.link(rate_gbit=self.slow_gbit)
        return Scenario(
            name=f"slots: {self.name}",
            values=self.net.values,
            topology=TopologySpec(hosts=2 * WORKERS),
            link=self.net.link(),
            link_back=self.net.link(marks=False),
            switch=SwitchSpec(mode="shared", shared_slots=self.shared),
            ecn_packets=self.net.threshold_packets,
            congestion=dict(congestion),
            controller=ASKED,
            aggregator=[AggregatorSpec(name=f"agg_{name}", job=name) for name in names],
            job=[
                JobSpec(
                    name=name,
                    mode="shared",
                    workers=WORKERS,
                    hosts=[f"h{first + rank + 1}" for rank in range(WORKERS)],
                    steps=1,
                    slots=2 * self.window,
                    tensors=self.net.endless(self.total_s),
                    check=False,
                )
                for first, name in ((0, HEALTHY), (WORKERS, LATE))
                if name in names
            ],
            fault=[
                FaultSpec(what="link", where=f"h{2 * WORKERS}-s1", at_ms=0, for_ms=1e6, link=slow)
            ],
        )

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """Twice: the healthy job alone, and both."""
        alone = self._observe(congestion, seed, [HEALTHY])
        both = self._observe(congestion, seed, [HEALTHY, LATE])
        looks = both.at_s >= _WARM_S
        healthy, late = (
            rate_gbit(both.at_s, both.jobs[name].done_bytes, _WARM_S) for name in (HEALTHY, LATE)
        )
        alone_gbit = rate_gbit(alone.at_s, alone.jobs[HEALTHY].done_bytes, _WARM_S)
        return Measured(
            metrics={
                "Gbit/s": healthy,
                "alone, Gbit/s": alone_gbit,
                "share of alone": healthy / alone_gbit if alone_gbit else 0.0,
                "late, Gbit/s": late,
                "late slots": float(both.slots[LATE][looks].mean()) / self.shared,
                "healthy slots": float(both.slots[HEALTHY][looks].mean()) / self.shared,
                "loss": loss_share(both, _WARM_S),
                "timeouts": grown(both.at_s, both.jobs[HEALTHY].timeouts, _WARM_S),
            },
            series=series_of(both),
        )

    def _observe(self, congestion: Mapping[str, object], seed: int, names: list[str]) -> History:
        watch = Watch(every_s=1e-4, total_s=self.total_s, shared_slots=self.shared)
        return observe(self.scenario(congestion, names), seed, watch)


def _cell(shared: int, slow_gbit: float, *, is_quick: bool = False) -> Slots:
    # Two cables: by way of the switch to the aggregator.
    net = Net(100, 20, 1024, 64, cables=2)
    return Slots(
        name=f"{shared} slots, straggler at {slow_gbit:g} of {net.text}",
        net=net,
        shared=shared,
        slow_gbit=slow_gbit,
        is_quick=is_quick,
        plot="slots" if is_quick else "",
    )


SLOTS = Family(
    "slots",
    "two jobs of 4 workers on one pool of slots, one with a straggler",
    (_cell(450, 15, is_quick=True), _cell(450, 2), _cell(900, 15)),
    (
        Promise("share of alone", 0.95, is_least=True),
        Promise("Gbit/s", 1.5, is_least=True, relative_to="aimd"),
        Promise("late slots", 0.05, is_least=False),
    ),
    (
        *("Gbit/s", "alone, Gbit/s", "share of alone", "late, Gbit/s", "healthy slots"),
        *("late slots", "loss", "timeouts"),
    ),
)
