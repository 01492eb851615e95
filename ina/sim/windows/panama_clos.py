"""PANAMA's comparison (MLSys 2021): training through the network, or by its hosts in a ring?

A job computes and sums by turns, beside the flows of a web search between the same hosts, once over
a tree of switches with the algorithm, and once in a ring of DCTCP flows. Of PANAMA's simulation the
paper's summary is known here, and no setting: the network is as large as is simulated in seconds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ina.sim.flows import Completion
from ina.sim.scenario import JobSpec, Scenario, TensorSpec, TopologySpec
from ina.sim.traffic import PoissonSpec
from ina.sim.windows.cell import Cell, Family, Measured
from ina.sim.windows.measure import grown, loss_share, percentile, queue_bytes
from ina.sim.windows.network import ASKED, Limit, Net, limit
from ina.sim.windows.ring import Beside, Ring
from ina.sim.windows.series import series_of
from ina.sim.windows.tcp import DCTCP, MSS_BYTES, TCP_BYTES
from ina.sim.windows.timing import READY_MS
from ina.sim.windows.watch import Watch, observe, run_watched
from ina.sim.windows.web_search import begun_from, short_us

_LEAVES, _HOSTS_A_LEAF, _SPINES = 4, 4, 2
_HOSTS = _LEAVES * _HOSTS_A_LEAF
_SLOTS = 512
_MARK_BYTES = 65 * 1500
"""Longer queues are marked: what DCTCP's authors have at 10 Gbit/s (SIGCOMM 2010)."""
_WARM_S = 0.06
"""In which long flows gather."""
_TAIL_S = 0.02
"""Before a run's end: what begins then does not count, for slow ones would be missing."""


@dataclass(frozen=True)
class _Hosts:
    """What training by hosts alone came to."""

    step_s: float
    """The mean, computing included."""
    short_us: list[float]
    """Of short flows beside it;"""
    calm_us: list[float]
    """and where nobody trains."""


@dataclass(frozen=True, kw_only=True)
class PanamaClos(Cell):
    """Each host has a worker. A leaf's cables to spines carry all that its hosts do."""

    load: float
    """Of the hosts' links, by the flows."""
    ring_s: float
    """That the ring's sums of a step take on empty links."""
    compute_s: float
    """Of a step, before its sums."""
    measured_s: float

    @property
    def limit(self) -> Limit:
        """While it sums, alone."""
        return limit(self.net, _SLOTS // 2)

    @property
    def _step_bytes(self) -> float:
        return self.ring_bytes / self._times

    @property
    def ring_bytes(self) -> float:
        """Of a step, that each host sends to the next."""
        return self.ring_s * self.net.rate_gbit * 1e9 / 8 * MSS_BYTES / TCP_BYTES

    @property
    def _times(self) -> float:
        """So often a host sends each value in a ring: once for its sum, and once for all to have
        that, but for the last host's part."""
        return 2 * (_HOSTS - 1) / _HOSTS

    @property
    def total_s(self) -> float:
        """Since the flows begin."""
        return _WARM_S + self.measured_s

    def scenario(self, congestion: Mapping[str, object]) -> Scenario:
        """``congestion``: of the workers' windows; empty: there is no job."""
        job = JobSpec(
            name="train",
            workers=_HOSTS,
            racks=_LEAVES,
            steps=2 + round(self.total_s / self.compute_s),
            slots=_SLOTS,
            at_ms=[READY_MS],
            compute_ms=self.compute_s * 1e3,
            tensors=[TensorSpec(elems=round(self._step_bytes / 4))],
            check=False,
        )
        up_gbit = self.net.rate_gbit * _HOSTS_A_LEAF / _SPINES
        return Scenario(
            name=f"panama-clos: {self.name}",
            values=self.net.values,
            topology=TopologySpec(
                kind="leaf-spine", leaves=_LEAVES, hosts=_HOSTS_A_LEAF, spines=_SPINES, above="p4"
            ),
            link=msgspec.structs.replace(self.net.link(), mark_kib=_MARK_BYTES / 1024),
            link_up=self.net.link(marks=False, rate_gbit=up_gbit),
            ecn_packets=_MARK_BYTES // self.net.frame_bytes,
            congestion=dict(congestion),
            controller=ASKED,
            job=[job] if congestion else [],
            traffic=[PoissonSpec(name="flows", load=self.load, start_ms=READY_MS, tcp=DCTCP)],
        )

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """As the base has it. Beside the ring, flows come as they do here: of the same seed."""
        hosts = _by_hosts(self, seed)
        watch = Watch(every_s=2 * self.net.base_s, total_s=self.total_s)
        history = observe(self.scenario(congestion), seed, watch)
        found_us = self.short_us(watch.completions)
        step_s = self.compute_s + _mean(_behind(watch.reduced_s["train"], self.compute_s))
        job = history.jobs["train"]
        return Measured(
            metrics={
                "step, ms": step_s * 1e3,
                "ring's, ms": hosts.step_s * 1e3,
                "times as fast": hosts.step_s / step_s,
                "short flows": float(len(found_us)),
                "short 99 %, us": percentile(found_us, 99),
                "ring's 99 %, us": percentile(hosts.short_us, 99),
                "without, us": percentile(hosts.calm_us, 99),
                "99 % better": percentile(hosts.short_us, 99) / percentile(found_us, 99),
                "mean better": _mean(hosts.short_us) / _mean(found_us),
                "without, better": percentile(hosts.short_us, 99) / percentile(hosts.calm_us, 99),
                "loss": loss_share(history, _WARM_S),
                "queue/threshold": queue_bytes(history, _WARM_S, 99) / _MARK_BYTES,
                "timeouts": grown(history.at_s, job.timeouts, _WARM_S),
            },
            series=series_of(history, hosts=_HOSTS),
            completions_us=found_us,
        )

    def short_us(self, flows: Sequence[Completion]) -> list[float]:
        """Of those that begin when long ones have gathered, and early enough to end."""
        end_ns = (READY_MS / 1e3 + self.total_s - _TAIL_S) * 1e9
        counted = begun_from(flows, READY_MS / 1e3 + _WARM_S)
        return short_us([flow for flow in counted if flow.started_ns < end_ns])


@functools.cache
def _by_hosts(cell: PanamaClos, seed: int) -> _Hosts:
    """Once for all algorithms that this process runs."""
    end_s = READY_MS / 1e3 + cell.total_s
    ring, calm = Ring(end_s, cell.ring_bytes, cell.compute_s), Beside(end_s)
    for watch in (ring, calm):
        run_watched(cell.scenario({}), seed, watch)
    return _Hosts(
        step_s=cell.compute_s + _mean(_behind(ring.sums_s, cell.compute_s)),
        short_us=cell.short_us(ring.completions),
        calm_us=cell.short_us(calm.completions),
    )


def _behind(sums_s: Sequence[float], compute_s: float) -> list[float]:
    """Of each step's sums, those of steps that began when long flows had gathered."""
    found, at_s = [], 0.0
    for sum_s in sums_s:
        at_s += compute_s
        if at_s >= _WARM_S:
            found.append(sum_s)
        at_s += sum_s
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _cell(load: float) -> PanamaClos:
    net = Net(10, 40, 1024, 256, cables=2)
    return PanamaClos(
        name=f"{_HOSTS} workers, load {100 * load:g} %, {net.text}",
        net=net,
        load=load,
        ring_s=10e-3,
        compute_s=10e-3,
        measured_s=0.4,
        plot=f"panama-clos-{100 * load:g}",
    )


PANAMA_CLOS = Family(
    "panama-clos",
    "a job beside the flows of a web search, through the network and by its hosts in a ring",
    (_cell(0.03), _cell(0.1), _cell(0.3)),
    (),
    (
        *("step, ms", "ring's, ms", "times as fast", "short flows", "short 99 %, us"),
        *(
            "ring's 99 %, us",
            "without, us",
            "99 % better",
            "mean better",
            "loss",
            "queue/threshold",
            "timeouts",
        ),
    ),
)
