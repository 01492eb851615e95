"""The simulated half of an agreement: the star as a scenario, and what its run came to."""

from __future__ import annotations

import itertools
import math

from ina.bench.agreement import Case, Costs, Round, Side, side
from ina.bench.steps_worker import JOB
from ina.sim.run import Simulation
from ina.sim.scenario import (
    HostSpec,
    JobSpec,
    LinkSpec,
    Scenario,
    SwitchSpec,
    TensorSpec,
    TopologySpec,
    check,
)


def scenario(workers: int, loss: float, case: Case, costs: Costs) -> Scenario:
    """The star of ``ina.bench.star``: token buckets, super-packets, a soft switch."""
    found = Scenario(
        name=f"star-{workers}-{loss:g}",
        limit_s=3600.0,  # of virtual time: far more than any run is to take
        values=case.values,
        topology=TopologySpec(kind="star", hosts=workers),
        link=LinkSpec(
            rate_gbit=case.rate_bit_s / 1e9,
            framing_bytes=0,  # a token bucket counts a frame from its Ethernet header on
            burst_kib=case.burst_bytes / 1024,
            delay_us=0.0,  # a veth's time is its sender's
            queue_kib=case.queue_bytes / 1024,
        ),
        host=HostSpec(
            packet_ns=round(costs.worker_packet_ns),
            wake_us=costs.wake_us,
            wake_jitter_us=costs.wake_jitter_us,
            trains=True,
        ),
        switch=SwitchSpec(
            packet_ns=round(costs.switch_packet_ns),
            wake_us=costs.wake_us,
            wake_jitter_us=costs.wake_jitter_us,
            loss=loss,
            trains=True,
        ),
        congestion={"algorithm": case.algorithm},
        job=[
            JobSpec(
                name=JOB,
                workers=workers,
                steps=case.all_steps,
                tensors=[TensorSpec(elems=case.elems, dtype=case.dtype)],
            )
        ],
    )
    check(found)
    return found


def run(scenario: Scenario, case: Case) -> Side:
    """Runs it. Raises :class:`~ina.sim.errors.ScenarioError`."""
    simulation = Simulation(scenario, case.seed)
    report = simulation.run()
    (incarnation,) = simulation.jobs[JOB].incarnations
    looks = incarnation.looks[:: case.steps]  # behind the first step, and behind each round
    rounds = [
        Round(
            seconds=math.fsum(
                incarnation.reduced_s[1 + number * case.steps : 1 + (number + 1) * case.steps]
            ),
            sent=after.sent - before.sent,
            resends=after.resends - before.resends,
            lost=after.lost - before.lost,
            overtaken=after.overtaken - before.overtaken,
            probes=after.probes - before.probes,
        )
        for number, (before, after) in enumerate(itertools.pairwise(looks))
    ]
    return side(rounds, case, len(report.violations), incarnation.in_flight_limit)
