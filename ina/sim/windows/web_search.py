"""A job beside the flows of a web search: what do short flows wait, and what does training lose?"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ina.sim.flows import Completion
from ina.sim.scenario import Scenario, TopologySpec
from ina.sim.traffic import PoissonSpec
from ina.sim.windows.cell import Cell, Family, Measured, Promise
from ina.sim.windows.fair import Flow, fair_rate
from ina.sim.windows.measure import grown, loss_share, percentile, queue_bytes, rate_gbit
from ina.sim.windows.network import ASKED, Limit, Net, limit
from ina.sim.windows.ring import Beside
from ina.sim.windows.series import series_of
from ina.sim.windows.tcp import DCTCP, MSS_BYTES, TCP_BYTES
from ina.sim.windows.timing import READY_MS
from ina.sim.windows.watch import Watch, observe, run_watched

_HOSTS = 8
_SLOTS = 512
_WARM_S = 0.06
"""In which long flows gather."""
_SHORT_BYTES = 100_000


@dataclass(frozen=True, kw_only=True)
class WebSearch(Cell):
    """Each host has a worker; flows go between any two of them (PANAMA, MLSys 2021)."""

    load: float
    measured_s: float

    @property
    def limit(self) -> Limit:
        """Of the job alone: it can take all, and let the flows starve."""
        return limit(self.net, _SLOTS // 2)

    @property
    def left_gbit(self) -> float:
        """What flows leave of the limit on average, if they are served as they come."""
        return min(self.net.goodput_gbit() * (1 - self.load), self.limit.goodput_gbit)

    @property
    def total_s(self) -> float:
        """Since the job's first packet."""
        return _WARM_S + self.measured_s + 0.01  # the job is there some ms before flows are

    def scenario(self, congestion: Mapping[str, object]) -> Scenario:
        """The job comes first. ``congestion``: of its windows; empty: there is no job."""
        return Scenario(
            name=f"web-search: {self.name}",
            values=self.net.values,
            topology=TopologySpec(hosts=_HOSTS),
            link=self.net.link(),
            link_back=self.net.link(marks=False),
            ecn_packets=self.net.threshold_packets,
            congestion=dict(congestion),
            controller=ASKED,
            job=[self.net.training(_HOSTS, _SLOTS, self.total_s)] if congestion else [],
            traffic=[
                PoissonSpec(
                    name="flows",
                    load=self.load,
                    start_ms=READY_MS,
                    tcp=DCTCP,
                )
            ],
        )

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """As the base has it."""
        watch = Watch(every_s=2 * self.net.base_s, total_s=self.total_s)
        history = observe(self.scenario(congestion), seed, watch)
        from_s = READY_MS / 1e3 + _WARM_S - history.began_s
        flows = begun_from(watch.completions, READY_MS / 1e3 + _WARM_S)
        found_us = short_us(flows)
        slowdowns = [flow.slowdown for flow in flows if flow.slowdown is not None]
        job = history.jobs["train"]
        goodput = rate_gbit(history.at_s, job.done_bytes, from_s)
        return Measured(
            metrics={
                "Gbit/s": goodput,
                "left, Gbit/s": self.left_gbit,
                "taken of left": min(goodput / self.left_gbit, 1.0),
                "fair of left": _fair_gbit(self, seed) / self.left_gbit,
                "short flows": float(len(found_us)),
                "short 50 %, us": percentile(found_us, 50),
                "short 99 %, us": percentile(found_us, 99),
                "mean slowdown": sum(slowdowns) / len(slowdowns) if slowdowns else 0.0,
                "loss": loss_share(history, from_s),
                "queue/threshold": queue_bytes(history, from_s, 99) / self.net.threshold_bytes,
                "timeouts": grown(history.at_s, job.timeouts, from_s),
            },
            series=series_of(history, hosts=_HOSTS),
            completions_us=found_us,
        )


@functools.cache
def _fair_gbit(cell: WebSearch, seed: int) -> float:
    """Of a job whose links are shared evenly with the same flows. These are known from a run of
    theirs alone, but for those that have not ended by its end."""
    end_s = READY_MS / 1e3 + cell.total_s
    alone = Beside(end_s)
    run_watched(cell.scenario({}), seed, alone)
    flows = [
        Flow(
            one.started_ns / 1e9,
            one.source,
            one.destination,
            one.size_bytes * TCP_BYTES / MSS_BYTES,
        )
        for one in alone.completions
    ]
    hosts = [f"h{number + 1}" for number in range(_HOSTS)]
    capacity = cell.net.rate_gbit * 1e9 / 8
    rate = fair_rate(flows, hosts, capacity, READY_MS / 1e3 + _WARM_S, end_s)
    return cell.net.goodput_gbit() * rate / capacity


def begun_from(flows: Sequence[Completion], begun_s: float) -> list[Completion]:
    """Those that began then or later, in virtual time of the run."""
    return [flow for flow in flows if flow.started_ns >= begun_s * 1e9]


def short_us(flows: Sequence[Completion]) -> list[float]:
    """How long those of them took that are short, and that have ended."""
    return [
        flow.duration_ns / 1e3
        for flow in flows
        if flow.size_bytes < _SHORT_BYTES and flow.duration_ns is not None
    ]


def _cell(load: float, net: Net, measured_s: float, *, is_quick: bool = False) -> WebSearch:
    return WebSearch(
        name=f"load {100 * load:g} % for {measured_s:g} s, {net.text}",
        net=net,
        load=load,
        measured_s=measured_s,
        is_quick=is_quick,
        plot="" if is_quick else f"web-search-{100 * load:g}",
    )


_NET = Net(10, 20, 2048, 1024)
WEB_SEARCH = Family(
    "web-search",
    "a job beside the flows of a web search (DCTCP) between the same hosts",
    (_cell(0.3, _NET, 0.08, is_quick=True), _cell(0.3, _NET, 0.4), _cell(0.6, _NET, 0.2)),
    (
        Promise("short 99 %, us", 1 / 3, is_least=False, relative_to="fixed"),
        # What `fixed` takes beyond is the flows' own: no algorithm can have it and serve them.
        Promise("taken of left", 0.95, is_least=True, relative_to="fixed"),
    ),
    (
        *("Gbit/s", "left, Gbit/s", "taken of left", "fair of left", "short flows"),
        *(
            "short 50 %, us",
            "short 99 %, us",
            "mean slowdown",
            "loss",
            "queue/threshold",
            "timeouts",
        ),
    ),
)
