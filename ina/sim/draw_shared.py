"""Jobs of mode ``shared`` for the fuzzer: those of a scenario, on slots that they share."""

from __future__ import annotations

import random

from msgspec.structs import replace

from ina.modes.patience import STEPS
from ina.p4.names import POOL, SHARED
from ina.sim.errors import ScenarioError
from ina.sim.racks import joined, tree_of
from ina.sim.scenario import (
    DTYPES,
    AggregatorSpec,
    FaultSpec,
    JobSpec,
    LinkSpec,
    Scenario,
    StragglerSpec,
    SwitchSpec,
    TensorSpec,
)
from ina.sim.sharing import check_sharing

_ATTEMPTS = 10
_LATEST_MS = 5_000.0
_CROWDED = 0.25


def sharing(rng: random.Random, scenario: Scenario, link: LinkSpec) -> Scenario:
    """The same network, with some of its jobs in mode ``shared``, and more of them.

    Few slots, so that jobs meet at them; results are made by aggregators of the controller, by
    switches of the fabric or in rank 0's process. ``link``: of an aggregator, at times.
    """
    for _ in range(_ATTEMPTS):
        drawn = _drawn(rng, scenario, link)
        try:
            check_sharing(drawn, drawn.build_topology())
        except ScenarioError:  # a tree that has all levels already, a switch that reaches none
            continue
        return drawn
    return scenario


def _drawn(rng: random.Random, scenario: Scenario, link: LinkSpec) -> Scenario:
    jobs = _jobs(rng, scenario.job)
    if rng.random() < _CROWDED:
        jobs = [_crowded(rng, job) if job.mode == SHARED else job for job in jobs]
    shared = [job for job in jobs if job.mode == SHARED]
    scenario = replace(
        scenario,
        job=jobs,
        switch=SwitchSpec(
            mode=SHARED,
            shared_slots=rng.choice((1, 1, 2, 2, 4, 4, 8, 16, 64)),
            slot_age_us=round(20 * 50_000 ** rng.random()),  # 20 us to 1 s
        ),
        # Few slots that few packets ask for: with more, most would go past them.
        controller=replace(
            scenario.controller, sizing=rng.choice(("asked", "asked", "asked", "asked", "fixed"))
        ),
    )
    if len(shared) == len(jobs) and rng.random() < 0.3:
        scenario = _with_quotas(rng, scenario)
    scenario = rng.choice((_configured, _configured, _of_fabric, _embedded))(rng, scenario, shared)
    if rng.random() < 0.3:
        own = [replace(one, link=link) for one in scenario.aggregator]
        scenario = replace(scenario, aggregator=own)
    faults = [*scenario.fault, *_faults(rng, scenario), *_changes(rng, jobs)]
    return replace(scenario, fault=faults)


def _jobs(rng: random.Random, jobs: list[JobSpec]) -> list[JobSpec]:
    """Mostly several at nearly the same time, which may be of one kind."""
    found = list(jobs)
    while len(found) < rng.choice((1, 2, 2, 2, 3, 4)):
        found.append(replace(rng.choice(jobs), name=f"j{len(found)}"))
    first = rng.randrange(len(found))
    return [
        replace(
            job,
            mode=SHARED if number == first or rng.random() < 0.7 else POOL,
            slots=rng.choice((2, 2, 4, 4, 8, 16, job.slots)),
            priority=rng.choice((0, 0, 1, STEPS)),
            steps=max(job.steps, rng.randint(1, 6)),
            straggler=job.straggler if rng.random() < 0.3 else _late_in_turn(rng),
            at_ms=job.at_ms if rng.random() < 0.3 else [float(f"{0.1 * 100 ** rng.random():.3g}")],
        )
        for number, job in enumerate(found)
    ]


def _crowded(rng: random.Random, job: JobSpec) -> JobSpec:
    """Many sums through few slots, open for as long as others want them: jobs put others out."""
    tensor = TensorSpec(elems=rng.randint(1_000, 6_400), dtype=rng.choice(DTYPES))
    late = StragglerSpec(share=0.5, mean_ms=float(f"{0.02 * 10 ** rng.random():.3g}"))
    return replace(
        job, tensors=[tensor], slots=4, steps=rng.randint(4, 12), straggler=late, compute_ms=0.0,
        at_ms=[0.1],
    )  # fmt: skip


def _late_in_turn(rng: random.Random) -> StragglerSpec:
    """By about as long as a sum takes, so that some are open when others want their slots."""
    return StragglerSpec(share=0.5, mean_ms=float(f"{0.02 * 250 ** rng.random():.3g}"))


def _with_quotas(rng: random.Random, scenario: Scenario) -> Scenario:
    quotas = {"few": rng.choice((1, 2, 8)), "many": 0}
    jobs = [replace(job, tenant=rng.choice(list(quotas))) for job in scenario.job]
    return replace(scenario, job=jobs, controller=replace(scenario.controller, quotas=quotas))


def _configured(rng: random.Random, scenario: Scenario, shared: list[JobSpec]) -> Scenario:
    switches = scenario.build_topology().of_kind("p4")
    ends = [
        AggregatorSpec(name=f"agg{number + 1}", switch=rng.choice(switches))
        for number in range(rng.choice((1, 1, 2)))
    ]
    return replace(scenario, aggregator=ends)


def dealt(rng: random.Random, scenario: Scenario) -> Scenario:
    """Now and then each job's lanes are dealt to several of the controller's aggregators."""
    ends = scenario.aggregator
    if not ends or any(one.job for one in ends) or rng.random() < 0.4:
        return scenario
    most = rng.choice((2, 2, 4))
    switches = scenario.build_topology().of_kind("p4")
    more = [
        AggregatorSpec(name=f"agg{number + 1}", switch=rng.choice(switches), link=ends[0].link)
        for number in range(len(ends), most)
    ]
    control = replace(scenario.controller, aggregators=most)
    drawn = replace(scenario, aggregator=[*ends, *more], controller=control)
    try:
        check_sharing(drawn, drawn.build_topology())
    except ScenarioError:  # a switch that a job does not reach
        return scenario
    return drawn


def _embedded(rng: random.Random, scenario: Scenario, shared: list[JobSpec]) -> Scenario:
    topology = scenario.build_topology()
    ends = [
        AggregatorSpec(
            name=f"own_{job.name}", switch=topology.switch_of(job.hosts[0]), job=job.name
        )
        for job in shared
    ]
    return replace(scenario, aggregator=ends)


def _of_fabric(rng: random.Random, scenario: Scenario, shared: list[JobSpec]) -> Scenario:
    """Switches of the fabric, and for the jobs that are summed elsewhere one of the controller."""
    topology = scenario.build_topology()
    fabric = joined(topology)
    roots = [tree_of(fabric, topology, job.name, job.hosts).root.switch for job in shared]
    switches = list(dict.fromkeys(roots))
    if len(switches) > 1 and rng.random() < 0.5:
        switches.pop()
        scenario = _configured(rng, scenario, shared)
    return replace(scenario, switch=replace(scenario.switch, aggregators=switches))


def _faults(rng: random.Random, scenario: Scenario) -> list[FaultSpec]:
    """Switches that lose their registers, for which jobs that share them only wait; aggregators
    that do, and that are not reached for a while."""
    topology = scenario.build_topology()
    ends = topology.of_kind("aggregator", "embedded")
    cables = [str(cable) for cable in topology.cables if cable.one in ends]
    found = []
    for what, places, share in (
        ("power_cycle", topology.of_kind("p4"), 0.4),
        ("power_cycle", topology.of_kind("aggregator"), 0.15),
        ("link_down", cables, 0.15),
    ):
        if places and rng.random() < share:
            found.append(
                FaultSpec(
                    what=what,  # type: ignore[arg-type]
                    where=rng.choice(places),
                    at_ms=float(f"{_LATEST_MS / 50_000 * 50_000 ** rng.random():.3g}"),
                    for_ms=float(f"{0.1 * 10_000 ** rng.random():.3g}"),
                )
            )
    return found


def _changes(rng: random.Random, jobs: list[JobSpec]) -> list[FaultSpec]:
    """Of a job's mode, to and fro, with as many slots as it has or others."""
    if rng.random() < 0.6:
        return []
    job, every_ms = rng.choice(jobs), float(f"{2.0 * 100 ** rng.random():.3g}")
    return [
        FaultSpec(
            what="resize",
            where=job.name,
            every_ms=every_ms,
            slots=rng.choice((0, 0, 2, 8, 64)),
            mode=mode,
        )
        for mode in (SHARED, POOL)
    ]
