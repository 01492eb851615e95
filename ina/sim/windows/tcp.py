"""A job beside TCP flows that do not end, on one link: does each get its part?"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ina.sim.scenario import Scenario, TopologySpec
from ina.sim.traffic import IncastSpec, TcpSpec
from ina.sim.windows.cell import Cell, Family, Measured, Promise
from ina.sim.windows.measure import grown, loss_share, queue_bytes, rate_gbit
from ina.sim.windows.network import ASKED, Limit, Net, limit
from ina.sim.windows.series import series_of
from ina.sim.windows.timing import READY_MS
from ina.sim.windows.watch import Watch, observe

_WORKERS = 4
_SLOTS = 512
_SPREAD_MS = 5.0
"""In which flows begin."""
_WARM_S, _MEASURED_S = 0.06, 0.15
"""CUBIC takes tens of milliseconds to find its size."""
_TOTAL_S = _WARM_S + _MEASURED_S + 0.01
"""Since the job's first packet, which is some ms before the flows'."""
_SIZE_KIB = 1 << 22
"""More than the link takes in that time."""
DCTCP = TcpSpec(algorithm="dctcp")
MSS_BYTES, TCP_BYTES = 1460, 1460 + 54 + 24
"""Of a segment, and of its frame on the wire."""


@dataclass(frozen=True, kw_only=True)
class Tcp(Cell):
    """All flows end at the host of rank 0, each comes from a host of its own."""

    algorithm: Literal["cubic", "dctcp"]
    flows: int

    @property
    def limit(self) -> Limit:
        """Of the job: its fair share."""
        found = limit(self.net, _SLOTS // 2)
        fair = self.net.goodput_gbit() / (self.flows + 1)
        return Limit(fair, "fair") if fair < found.goodput_gbit else found

    def scenario(self, congestion: Mapping[str, object], seed: int) -> Scenario:
        """The job comes first."""
        chance = random.Random(f"{seed} tcp")
        return Scenario(
            name=f"tcp: {self.name}",
            values=self.net.values,
            topology=TopologySpec(hosts=_WORKERS + self.flows),
            link=self.net.link(),
            link_back=self.net.link(marks=False),
            ecn_packets=self.net.threshold_packets,
            congestion=dict(congestion),
            controller=ASKED,
            job=[self.net.training(_WORKERS, _SLOTS, _TOTAL_S)],
            traffic=[
                IncastSpec(
                    name=f"tcp{number + 1}",
                    sources=[f"h{_WORKERS + number + 1}"],
                    destinations=["h1"],
                    size_kib=_SIZE_KIB,
                    start_ms=READY_MS + chance.random() * _SPREAD_MS,
                    tcp=TcpSpec(algorithm=self.algorithm),
                )
                for number in range(self.flows)
            ],
        )

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """As the base has it."""
        watch = Watch(every_s=self.net.base_s, total_s=_TOTAL_S)
        history = observe(self.scenario(congestion, seed), seed, watch)
        from_s = READY_MS / 1e3 + _WARM_S - history.began_s
        job = history.jobs["train"]
        train = rate_gbit(history.at_s, job.done_bytes, from_s)
        fair = self.net.rate_gbit / (self.flows + 1)
        train_share = train * self.net.frame_bytes / self.net.payload_bytes / fair
        flows = [
            rate_gbit(history.at_s, bytes_of.sum(axis=1), from_s) * TCP_BYTES / MSS_BYTES / fair
            for bytes_of in history.flows.values()
        ]
        return Measured(
            metrics={
                "Gbit/s": train,
                "training/fair": train_share,
                "TCP/fair": sum(flows) / self.flows,
                "least flow/fair": min(flows),
                "used": (train_share + sum(flows)) / (self.flows + 1),
                "loss": loss_share(history, from_s),
                "queue/threshold": (
                    queue_bytes(history, from_s, 99, ["s1>h1"]) / self.net.threshold_bytes
                ),
                "timeouts": grown(history.at_s, job.timeouts, from_s),
            },
            series=series_of(history),
        )


def _cell(algorithm: Literal["cubic", "dctcp"], flows: int, net: Net) -> Tcp:
    plural = "flows" if flows > 1 else "flow"
    return Tcp(
        name=f"{flows} {algorithm.upper()} {plural}, {net.text}",
        net=net,
        algorithm=algorithm,
        flows=flows,
        is_quick=flows == 4,
        plot=f"tcp-{algorithm}" if flows == 4 else "",
    )


_NET = Net(10, 100, 512, 256)
TCP = Family(
    "tcp",
    "a job beside TCP flows that do not end, on one link",
    tuple(
        _cell(algorithm, flows, _NET)
        for algorithm in ("dctcp", "cubic")
        for flows in (1, 2, 4, 8, 16)
    ),
    (
        Promise("training/fair", 1 / 1.5, is_least=True),
        Promise("training/fair", 1.5, is_least=False),
        Promise("TCP/fair", 1 / 1.5, is_least=True),
        Promise("TCP/fair", 1.5, is_least=False),
        Promise("least flow/fair", 0.1, is_least=True),
    ),
    (
        *("Gbit/s", "training/fair", "TCP/fair", "least flow/fair", "used", "loss"),
        *("queue/threshold", "timeouts"),
    ),
)
