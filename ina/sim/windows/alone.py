"""One job alone: is the link full, does the queue stay short, is nothing lost?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ina.sim.scenario import Scenario, TopologySpec
from ina.sim.windows.cell import Cell, Family, Measured, Promise
from ina.sim.windows.measure import grown, loss_share, queue_bytes, rate_gbit
from ina.sim.windows.network import ASKED, Limit, Net, limit
from ina.sim.windows.series import series_of
from ina.sim.windows.timing import timing
from ina.sim.windows.watch import Watch, observe

_LEAST_W, _MOST_W = 64, 2048


@dataclass(frozen=True, kw_only=True)
class Alone(Cell):
    """Workers around one switch."""

    workers: int

    @property
    def window(self) -> int:
        """W: a power of two, twice what a round trip holds, if a switch with jobs has as many."""
        wanted = _LEAST_W
        while wanted < min(2 * self.net.product_packets, _MOST_W):
            wanted *= 2
        return wanted

    @property
    def limit(self) -> Limit:
        """Of the link, or of W."""
        return limit(self.net, self.window)

    def scenario(self, congestion: Mapping[str, object], total_s: float) -> Scenario:
        """For so long; the job itself would go on."""
        return Scenario(
            name=f"alone: {self.name}",
            values=self.net.values,
            topology=TopologySpec(hosts=self.workers),
            link=self.net.link(),
            link_back=self.net.link(marks=False),
            ecn_packets=self.net.threshold_packets,
            congestion=dict(congestion),
            controller=ASKED,
            job=[self.net.training(self.workers, 2 * self.window, total_s)],
        )

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """As the base has it."""
        time = timing(self.net, hops=2 * self.workers)
        watch = Watch(time.every_s, time.total_s)
        history = observe(self.scenario(congestion, time.total_s), seed, watch)
        job = history.jobs["train"]
        goodput = rate_gbit(history.at_s, job.done_bytes, time.warm_s)
        sent = grown(history.at_s, job.sent, time.warm_s)
        queue = queue_bytes(history, time.warm_s, 99)
        return Measured(
            metrics={
                "Gbit/s": goodput,
                "share of limit": goodput / self.limit.goodput_gbit,
                "loss": loss_share(history, time.warm_s),
                "queue/threshold": queue / self.net.threshold_bytes,
                "window": float(job.windows[history.first_at(time.warm_s) :].mean()),
                "resent": grown(history.at_s, job.resent, time.warm_s) / sent if sent else 0.0,
                "timeouts": grown(history.at_s, job.timeouts, time.warm_s),
            },
            series=series_of(history),
        )


def _cells() -> Iterator[Alone]:
    for workers, rate, round_trip_us, buffer_kib in itertools.product(
        (2, 32), (1, 10, 100), (5, 100, 1000), (64, 4096)
    ):
        values = 256 if rate == 1 else 1024
        is_costly = (workers, rate, round_trip_us) == (32, 100, 1000)  # minutes of processor time
        yield _cell(8 if is_costly else workers, Net(rate, round_trip_us, buffer_kib, values))
    yield _cell(8, Net(25, 50, 512, 1024), is_quick=True)


def _cell(workers: int, net: Net, *, is_quick: bool = False) -> Alone:
    name = f"{workers} workers, {net.text}"
    return Alone(
        name=name, net=net, workers=workers, is_quick=is_quick, plot="alone" if is_quick else ""
    )


ALONE = Family(
    "alone",
    "one job, alone on its links",
    tuple(_cells()),
    (
        Promise("share of limit", 0.97, is_least=True),
        Promise("loss", 1e-4, is_least=False),
        Promise("queue/threshold", 2.0, is_least=False),
    ),
    ("Gbit/s", "share of limit", "loss", "queue/threshold", "window", "timeouts"),
)
