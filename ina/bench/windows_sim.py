"""The simulated half of ``ina bench windows``: the same dumbbell in virtual time."""

from __future__ import annotations

from dataclasses import dataclass

from ina.bench import limits, star_sim
from ina.bench.agreement import Costs
from ina.bench.dumbbell import WORKERS, DumbbellShape
from ina.bench.windows import TENSOR_ELEMS, Bottleneck
from ina.sim.scenario import CableSpec, JobSpec, LinkSpec, Scenario, TensorSpec, TopologySpec
from ina.sim.traffic import IncastSpec, TcpSpec
from ina.sim.windows.measure import grown, jain, rate_gbit
from ina.sim.windows.timing import READY_MS
from ina.sim.windows.watch import Watch, observe

TCP = ("", "cubic", "dctcp")
"""Congestion controls of flows that can be simulated, and none."""
_SWITCH, _LEFT = "s1", "left"
_HOST_GBIT = 20.0
"""Of hosts' own links, which are as fast as the machine: far more than any bottleneck here."""
_EVERY_S = 2e-3
_MIN_RTO_MS, _DELAYED_ACK_US = 200.0, 40_000.0
"""Linux'."""
_WINDOW_KIB = 4096.0
"""Of a receiver that tunes itself: more than the bottleneck holds, as Linux has it."""
_TCP_BYTES = 1460 + 54


@dataclass(frozen=True)
class Simulated:
    """What a case came to in virtual time."""

    jobs_mbit_s: list[float]
    tcp_mbit_s: float | None
    jain: float | None
    marked_share: float
    dropped_share: float
    resends: int
    timeouts: int


def scenario(plan: DumbbellShape, case: Bottleneck, costs: Costs, for_s: float) -> Scenario:
    """``for_s``: so long jobs sum at least."""
    bottleneck = star_sim.bucket(
        plan.rate_bit_s, plan.burst_bytes, plan.queue_bytes, plan.mark_bytes
    )
    hosts_link = LinkSpec(rate_gbit=_HOST_GBIT, wire_gap_bytes=0, delay_us=0.0, queue_kib=1 << 16)
    count = WORKERS * case.jobs + (2 if case.tcp else 0)
    names = [f"h{number + 1}" for number in range(count)]
    cables = [
        CableSpec(one=name, other=(_LEFT, _SWITCH)[number % 2], link=hosts_link)
        for number, name in enumerate(names)
    ]
    steps = 2 + round(plan.rate_bit_s / 8 * for_s / (4 * TENSOR_ELEMS))
    tensors = [TensorSpec(elems=TENSOR_ELEMS, dtype="int32", count=steps)]
    flows = []
    if case.tcp:
        flows = [
            IncastSpec(
                name="tcp",
                sources=[names[-1]],
                destinations=[names[-2]],
                size_kib=1 << 22,
                start_ms=READY_MS,
                tcp=TcpSpec(
                    algorithm="dctcp" if case.tcp == "dctcp" else "cubic",
                    min_rto_ms=_MIN_RTO_MS,
                    delayed_ack_us=_DELAYED_ACK_US,
                    receive_window_kib=_WINDOW_KIB,
                ),
            )
        ]
    return Scenario(
        name=f"windows-{case.name}",
        limit_s=3600.0,
        values=plan.values,
        topology=TopologySpec(
            kind="graph",
            names=names,
            switches={_LEFT: "plain", _SWITCH: "p4"},
            cables=[*cables, CableSpec(one=_LEFT, other=_SWITCH, link=bottleneck)],
        ),
        host=star_sim.host(costs),
        switch=star_sim.switch(costs),
        congestion=dict(plan.congestion),
        job=[
            JobSpec(
                name=f"job{job + 1}",
                workers=WORKERS,
                hosts=names[WORKERS * job : WORKERS * (job + 1)],
                steps=1,
                tensors=tensors,
                check=False,
            )
            for job in range(case.jobs)
        ],
        traffic=list(flows),
    )


def run(
    plan: DumbbellShape, case: Bottleneck, costs: Costs, warm_s: float, measured_s: float
) -> Simulated:
    """Raises :class:`~ina.sim.errors.ScenarioError`."""
    total_s = warm_s + measured_s
    watch = Watch(every_s=_EVERY_S, total_s=total_s)
    history = observe(scenario(plan, case, costs, total_s), 1, watch)
    jobs = [1e3 * rate_gbit(history.at_s, job.done_bytes, warm_s) for job in history.jobs.values()]
    tcp = None
    if case.tcp:
        (flow,) = history.flows.values()
        on_wire = 1e3 * rate_gbit(history.at_s, flow.sum(axis=1), warm_s) * _TCP_BYTES / 1460
        tcp = on_wire * limits.TCP_PAYLOAD_SHARE

    def all_jobs(name: str) -> float:
        return sum(grown(history.at_s, getattr(it, name), warm_s) for it in history.jobs.values())

    ports = [history.ports[f"{one}>{other}"] for one, other in ((_SWITCH, _LEFT), (_LEFT, _SWITCH))]

    def both(name: str) -> float:
        return sum(grown(history.at_s, getattr(it, name), warm_s) for it in ports)

    return Simulated(
        jobs_mbit_s=jobs,
        tcp_mbit_s=tcp,
        jain=jain(jobs) if case.jobs > 1 else None,
        marked_share=all_jobs("marked") / max(all_jobs("sent"), 1.0),
        dropped_share=both("dropped") / max(both("offered"), 1.0),
        resends=round(all_jobs("resent")),
        timeouts=round(all_jobs("timeouts")),
    )
