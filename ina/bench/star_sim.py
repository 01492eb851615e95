"""The simulated half of an agreement: the star as a scenario, and what its run came to."""

from __future__ import annotations

import math

from ina.bench.agreement import AgreementCase, Costs, Side, SideRun, side
from ina.bench.steps_worker import JOB
from ina.sim.reading import check
from ina.sim.run import Simulation
from ina.sim.scenario import (
    ControllerSpec,
    HostSpec,
    JobSpec,
    LinkSpec,
    Scenario,
    SwitchSpec,
    TensorSpec,
    TopologySpec,
)

_COUNTS = ("sent", "resends", "lost", "overtaken", "probes")


def bucket(rate_bit_s: float, burst_bytes: int, queue_bytes: int, mark_bytes: int = 0) -> LinkSpec:
    """A link that a token bucket shapes; ``mark_bytes``: what may wait without a mark, 0: all."""
    return LinkSpec(
        rate_gbit=rate_bit_s / 1e9,
        wire_gap_bytes=0,  # a token bucket counts a frame from its Ethernet header on
        burst_kib=burst_bytes / 1024,
        delay_us=0.0,  # a veth's time is its sender's
        queue_kib=queue_bytes / 1024,
        marking="step" if mark_bytes else "none",
        mark_kib=mark_bytes / 1024,
    )


def host(costs: Costs) -> HostSpec:
    """What packets cost a worker here."""
    return HostSpec(
        packet_ns=round(costs.worker_packet_ns),
        wake_us=costs.wake_us,
        wake_jitter_us=costs.wake_jitter_us,
        trains=True,
    )


def switch(costs: Costs, loss: float = 0.0) -> SwitchSpec:
    """What they cost the soft switch, which loses some."""
    return SwitchSpec(
        packet_ns=round(costs.switch_packet_ns),
        wake_us=costs.wake_us,
        wake_jitter_us=costs.wake_jitter_us,
        loss=loss,
        trains=True,
    )


def scenario(
    workers: int, loss: float, case: AgreementCase, costs: Costs, apart_s: float = 0.0
) -> Scenario:
    """The star of ``ina.bench.star``: token buckets, super-packets, a soft switch.

    ``apart_s``: so far the ranks' begins are from each other, on average.
    """
    found = Scenario(
        name=f"star-{workers}-{loss:g}",
        limit_s=3600.0,  # of virtual time: far more than any run is to take
        values=case.values,
        topology=TopologySpec(kind="star", hosts=workers),
        link=bucket(case.rate_bit_s, case.burst_bytes, case.queue_bytes),
        host=host(costs),
        switch=switch(costs, loss),
        # Of n evenly distributed times the first and the last are (n - 1) / (n + 1) of it apart.
        controller=ControllerSpec(jitter_ms=1e3 * apart_s * (workers + 1) / (workers - 1)),
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


def run(scenario: Scenario, case: AgreementCase) -> Side:
    """Runs it. Raises :class:`~ina.sim.errors.ScenarioError`."""
    simulation = Simulation(scenario, case.seed)
    report = simulation.run()
    (incarnation,) = simulation.jobs[JOB].incarnations
    ranks = incarnation.looks.values()

    def count(name: str, step: int) -> int:
        return sum(getattr(looks[step], name) for looks in ranks)

    def of_round(number: int) -> SideRun:
        """Behind the first step, which is not counted."""
        first, last = number * case.steps, (number + 1) * case.steps
        return SideRun(
            seconds=math.fsum(incarnation.reduced_s[1 + first : 1 + last]),
            **{name: count(name, last) - count(name, first) for name in _COUNTS},
        )

    rounds = [of_round(number) for number in range(case.rounds)]
    return side(rounds, case, len(report.violations), incarnation.in_flight_limit)
