"""One worker is slower than the others, or pauses: do they keep their windows, and come back?"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ina.sim.scenario import FaultSpec, Scenario, TopologySpec
from ina.sim.windows.cell import Cell, Family, Measured, Promise
from ina.sim.windows.history import History
from ina.sim.windows.measure import grown, loss_share, queue_bytes, rate_gbit, rates_gbit
from ina.sim.windows.network import ASKED, Limit, Net, limit
from ina.sim.windows.series import series_of
from ina.sim.windows.timing import READY_MS, timing
from ina.sim.windows.watch import Watch, observe

_WORKERS = 8
_SLOTS = 512


@dataclass(frozen=True, kw_only=True)
class Late(Cell):
    """Workers around one switch; the last one is late."""

    def scenario(
        self, congestion: Mapping[str, object], total_s: float, faults: list[FaultSpec]
    ) -> Scenario:
        """``faults``: why it is late."""
        return Scenario(
            name=self.name,
            values=self.net.values,
            topology=TopologySpec(hosts=_WORKERS),
            link=self.net.link(),
            link_back=self.net.link(marks=False),
            ecn_packets=self.net.threshold_packets,
            congestion=dict(congestion),
            controller=ASKED,
            job=[self.net.training(_WORKERS, _SLOTS, total_s)],
            fault=faults,
        )


@dataclass(frozen=True, kw_only=True)
class SlowLink(Late):
    """Its link has a tenth of the others' rate."""

    @property
    def slow_gbit(self) -> float:
        """Of that link."""
        return self.net.rate_gbit / 10

    @property
    def limit(self) -> Limit:
        """Of the slow link."""
        return limit(self.net, _SLOTS // 2, self.slow_gbit)

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """As the base has it."""
        time = timing(self.net, hops=2 * _WORKERS, round_trips=10)
        slow = FaultSpec(
            what="link",
            where=f"h{_WORKERS}-s1",
            at_ms=0,
            for_ms=1e6,
            link=self.net.link(rate_gbit=self.slow_gbit),
        )
        watch = Watch(time.every_s, time.total_s)
        scenario = self.scenario(congestion, time.total_s, [slow])
        history = observe(scenario, seed, watch)
        job = history.jobs["train"]
        goodput = rate_gbit(history.at_s, job.done_bytes, time.warm_s)
        windows = job.windows[history.first_at(time.warm_s) :]
        return Measured(
            metrics={
                "Gbit/s": goodput,
                "share of limit": goodput / self.limit.goodput_gbit,
                "loss": loss_share(history, time.warm_s),
                "queue/threshold": queue_bytes(history, time.warm_s, 99) / self.net.threshold_bytes,
                "others' window": float(windows[:, :-1].mean()),
                "late window": float(windows[:, -1].mean()),
                "probes": grown(history.at_s, job.probes, time.warm_s),
                "timeouts": grown(history.at_s, job.timeouts, time.warm_s),
            },
            series=series_of(history),
        )


_FIRST_MS, _APART_MS, _PAUSE_MS = 20.0, 30.0, 10.0
"""The first one at that after the job's beginning, and how far apart they are, and how long."""
_PAUSES = 5
_BEFORE, _AFTER = 10, 4
"""Round trips before a pause whose windows, and after it whose rate counts; and that windows have
after it."""
_BACK_SHARE = 0.9
"""Of the rate before all pauses: so much is as good as all, over so short a time."""
_GIVEN_UP = 100
"""Round trips after a pause."""


@dataclass(frozen=True, kw_only=True)
class Pauses(Late):
    """It stops for 10 ms now and then, as a process that has to wait for its processor."""

    @property
    def limit(self) -> Limit:
        """Between pauses."""
        return limit(self.net, _SLOTS // 2)

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """As the base has it."""
        chance = random.Random(f"{seed} pauses")
        at_ms = [
            READY_MS + _FIRST_MS + (number + chance.random() / 2) * _APART_MS
            for number in range(_PAUSES)
        ]
        total_s = (_FIRST_MS + _PAUSES * _APART_MS) / 1e3
        faults = [
            FaultSpec(what="pause", where=f"train/{_WORKERS - 1}", at_ms=at, for_ms=_PAUSE_MS)
            for at in at_ms
        ]
        watch = Watch(every_s=self.net.base_s / 4, total_s=total_s)
        history = observe(self.scenario(congestion, total_s, faults), seed, watch)
        job = history.jobs["train"]
        begins_s = [at / 1e3 - history.began_s for at in at_ms]
        calm_s = begins_s[0] - _FIRST_MS / 2e3
        goodput = rate_gbit(history.at_s, job.done_bytes, calm_s, begins_s[0])
        back = [self._back(history, begin_s, goodput) for begin_s in begins_s]
        between = [
            rate_gbit(history.at_s, job.done_bytes, begin_s + _PAUSE_MS / 1e3, next_s)
            for begin_s, next_s in pairwise([*begins_s, total_s])
        ]
        kept = [self._kept(history, begin_s) for begin_s in begins_s]
        return Measured(
            metrics={
                "Gbit/s": goodput,
                "share of limit": goodput / self.limit.goodput_gbit,
                "share between": float(np.mean(between)) / self.limit.goodput_gbit,
                "window kept": float(np.mean(kept)),
                "round trips back": float(np.mean(back)),
                "most round trips": max(back),
                "loss": loss_share(history, calm_s),
                "queue/threshold": queue_bytes(history, calm_s, 99) / self.net.threshold_bytes,
                "probes a pause": grown(history.at_s, job.probes, calm_s) / _PAUSES,
            },
            series=series_of(history),
        )

    def _back(self, history: History, begin_s: float, calm_gbit: float) -> float:
        """Round trips from the end of a pause until the next ten have the rate from before all.

        What had waited for the worker comes at once: one round trip alone says little.
        """
        round_trip_s = self.net.base_s
        done = history.jobs["train"].done_bytes
        end_s = begin_s + _PAUSE_MS / 1e3
        for quarter in range(4 * _GIVEN_UP):
            from_s = end_s + quarter * round_trip_s / 4
            edges_s = np.array([from_s, from_s + _BEFORE * round_trip_s])
            if rates_gbit(history.at_s, done, edges_s)[0] >= _BACK_SHARE * calm_gbit:
                return quarter / 4
        return float(_GIVEN_UP)

    def _kept(self, history: History, begin_s: float) -> float:
        """What the others' windows came down to, as a share of what they were."""
        windows = history.jobs["train"].windows[:, :-1].mean(axis=1)
        round_trip_s = self.net.base_s
        first = history.first_at(begin_s)
        before = windows[history.first_at(begin_s - _BEFORE * round_trip_s) : first + 1].mean()
        last = history.first_at(begin_s + _PAUSE_MS / 1e3 + _AFTER * round_trip_s)
        return float(windows[first : last + 1].min() / before) if before else 0.0


def _slow(net: Net, *, is_quick: bool = False) -> SlowLink:
    name = f"{_WORKERS} workers, one at a tenth of {net.text}"
    return SlowLink(name=name, net=net, is_quick=is_quick, plot="slow-link" if is_quick else "")


def _pauses(net: Net, *, is_quick: bool = False) -> Pauses:
    name = f"{_WORKERS} workers, {net.text}"
    return Pauses(name=name, net=net, is_quick=is_quick, plot="pauses" if is_quick else "")


_TEN, _HUNDRED = Net(10, 100, 1024, 1024), Net(100, 50, 2048, 1024)
SLOW_LINK = Family(
    "slow-link",
    "one worker behind a link of a tenth of the others' rate",
    (_slow(_TEN, is_quick=True), _slow(_HUNDRED)),
    (
        Promise("share of limit", 0.97, is_least=True),
        Promise("loss", 1e-4, is_least=False),
        Promise("queue/threshold", 2.0, is_least=False),
    ),
    (
        *("Gbit/s", "share of limit", "loss", "queue/threshold", "others' window"),
        *("late window", "probes", "timeouts"),
    ),
)
PAUSES = Family(
    "pauses",
    "one worker that pauses for 10 ms now and then",
    (_pauses(_TEN, is_quick=True), _pauses(_HUNDRED)),
    (
        Promise("share of limit", 0.97, is_least=True),
        Promise("share between", 0.97, is_least=True),
        Promise("window kept", 0.9, is_least=True),
        Promise("most round trips", 2.0, is_least=False),
    ),
    (
        *("Gbit/s", "share of limit", "share between", "window kept", "round trips back"),
        *("most round trips", "loss", "queue/threshold", "probes a pause"),
    ),
)
