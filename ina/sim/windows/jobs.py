"""Equal jobs on one bottleneck, that come one by one, and half of which leave: do they share it?"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ina.sim.scenario import FaultSpec, JobSpec, Scenario, TopologySpec
from ina.sim.windows.cell import Cell, Family, Measured, Promise
from ina.sim.windows.history import History
from ina.sim.windows.measure import (
    converged_s,
    grown,
    jain,
    loss_share,
    queue_bytes,
    rate_gbit,
)
from ina.sim.windows.network import ASKED, Limit, Net, limit
from ina.sim.windows.series import series_of
from ina.sim.windows.timing import READY_MS
from ina.sim.windows.watch import Watch, observe

_SLOTS = 256
"""Of each job: sixteen find room on a switch."""
_APART, _STEADY, _LEFT = 60, 150, 100
"""Round trips: from one coming to the next; with all of them; with half of them."""
_FAIR = 0.95
"""Jain's index over ten round trips from which on shares count as equal: what is measured over so
short a time is not quite so."""
_BIN = 10


@dataclass(frozen=True, kw_only=True)
class Jobs(Cell):
    """Each job has a worker in either rack, and all meet on the racks' cables to the root."""

    count: int

    @property
    def limit(self) -> Limit:
        """Of all jobs together."""
        return limit(self.net, self.count * _SLOTS // 2)

    @property
    def _comes_ms(self) -> float:
        return _APART * self.net.base_s * 1e3

    @property
    def _leaves_s(self) -> float:
        """Half of them, since the first came."""
        return (self.count * _APART + _STEADY) * self.net.base_s

    @property
    def _total_s(self) -> float:
        return self._leaves_s + _LEFT * self.net.base_s

    def scenario(self, congestion: Mapping[str, object], seed: int) -> Scenario:
        """Who leaves is killed, as by an operator."""
        chance = random.Random(f"{seed} jobs")
        comes_ms = [
            READY_MS + (number + chance.random() / 2) * self._comes_ms
            for number in range(self.count)
        ]
        leaving = range(self.count // 2)
        return Scenario(
            name=f"jobs: {self.name}",
            values=self.net.values,
            topology=TopologySpec(kind="racks", racks=[self.count, self.count]),
            link=self.net.link(),
            link_up=self.net.link(marks=False),
            ecn_packets=self.net.threshold_packets,
            congestion=dict(congestion),
            controller=ASKED,
            job=[
                JobSpec(
                    name=f"job{number + 1}",
                    workers=2,
                    hosts=[f"h{number + 1}", f"h{self.count + number + 1}"],
                    steps=1,
                    slots=_SLOTS,
                    at_ms=[at_ms],
                    tensors=self.net.endless(self._total_s),
                    check=False,
                )
                for number, at_ms in enumerate(comes_ms)
            ],
            fault=[
                FaultSpec(
                    what="crash", where=f"job{number + 1}/{rank}", for_ms=0,
                    at_ms=READY_MS + self._leaves_s * 1e3,
                )
                for number in leaving for rank in (0, 1)
            ],
        )  # fmt: skip

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """As the base has it."""
        round_trip_s = self.net.base_s
        watch = Watch(every_s=round_trip_s / 2, total_s=self._total_s)
        history = observe(self.scenario(congestion, seed), seed, watch)
        names = [f"job{number + 1}" for number in range(self.count)]
        begun_s = max(_began_s(history, name) for name in names)
        left_s = READY_MS / 1e3 + self._leaves_s - history.began_s
        steady_s = left_s - _STEADY * round_trip_s / 2  # the second half, until some leave
        staying = names[self.count // 2 :]
        shares = _rates(history, names, steady_s, left_s)
        rest_s = left_s + _LEFT * round_trip_s / 2
        after = _rates(history, staying, rest_s, float(history.at_s[-1]))
        limit_gbit = self.limit.goodput_gbit
        after_gbit = limit(self.net, len(staying) * _SLOTS // 2).goodput_gbit
        return Measured(
            metrics={
                "Jain": jain(shares),
                "Jain after": jain(after),
                "round trips": self._converged(history, names, begun_s, left_s),
                "round trips after": self._converged(
                    history, staying, left_s, float(history.at_s[-1])
                ),
                "share of limit": sum(shares) / limit_gbit,
                "share after": sum(after) / after_gbit,
                "loss": loss_share(history, steady_s),
                "queue/threshold": queue_bytes(history, steady_s, 99) / self.net.threshold_bytes,
                "timeouts": sum(
                    grown(history.at_s, history.jobs[name].timeouts, begun_s) for name in staying
                ),
            },
            series=series_of(history),
        )

    def _converged(self, history: History, names: list[str], from_s: float, to_s: float) -> float:
        """In round trips."""
        found_s = converged_s(
            history.at_s,
            [history.jobs[name].done_bytes for name in names],
            from_s=from_s,
            to_s=to_s,
            bin_s=_BIN * self.net.base_s,
            index=_FAIR,
        )
        return found_s / self.net.base_s


def _began_s(history: History, name: str) -> float:
    """The look before its first packet was seen."""
    sent = np.flatnonzero(history.jobs[name].sent > 0)
    return float(history.at_s[max(sent[0] - 1, 0)]) if len(sent) else float(history.at_s[-1])


def _rates(history: History, names: list[str], from_s: float, to_s: float) -> list[float]:
    return [rate_gbit(history.at_s, history.jobs[name].done_bytes, from_s, to_s) for name in names]


def _cell(count: int, net: Net, *, is_quick: bool = False) -> Jobs:
    return Jobs(
        name=f"{count} jobs, {net.text}",
        net=net,
        count=count,
        is_quick=is_quick,
        plot="jobs" if is_quick else "",
    )


_TEN = Net(10, 50, 512, 256, cables=2)
_HUNDRED = Net(100, 50, 2048, 1024, cables=2)
JOBS = Family(
    "jobs",
    "equal jobs that meet on one link, come one by one, and half of which leave",
    (
        *(_cell(count, _TEN, is_quick=count == 4) for count in (2, 4, 8, 16)),
        *(_cell(count, _HUNDRED) for count in (2, 4, 8, 16)),
    ),
    (
        Promise("Jain", 0.97, is_least=True),
        Promise("Jain after", 0.97, is_least=True),
        Promise("round trips", 50, is_least=False),
        Promise("round trips after", 50, is_least=False),
        Promise("share of limit", 0.97, is_least=True),
        Promise("share after", 0.97, is_least=True),
    ),
    (
        *("Jain", "Jain after", "round trips", "round trips after", "share of limit"),
        *("share after", "loss", "queue/threshold"),
    ),
)
