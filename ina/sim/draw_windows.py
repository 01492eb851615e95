"""Windows that change while jobs run: caps, weights, and orders of an operator."""

from __future__ import annotations

import random

from msgspec.structs import replace

from ina.congestion import ALGORITHMS
from ina.sim.scenario import FaultSpec, JobSpec, Scenario

_CAPPED = 0.5
"""Of the seeds with windows that change; in the others operators alone change them."""


def any_congestion(rng: random.Random) -> dict[str, object]:
    """An algorithm, and some of its options."""
    name = rng.choice(list(ALGORITHMS))
    table: dict[str, object] = {"algorithm": name}
    for option in ALGORITHMS[name].options:
        if rng.random() < 0.2:
            table[option.name] = option.least + rng.random() * min(
                option.most - option.least, 4 * max(option.usual, 1.0)
            )
    return table


def with_windows(rng: random.Random, scenario: Scenario) -> Scenario:
    """The scenario with an algorithm of each job's own, and others now and then."""
    jobs = [_job(rng, job) for job in scenario.job]
    every_ms = rng.choice((50.0, 200.0, 1000.0))
    orders = [
        FaultSpec(what="windows", where=name, every_ms=every_ms, congestion=any_congestion(rng))
        for job in jobs
        for name in job.names()[:1]
        for _ in range(2)
    ]
    controller = scenario.controller
    if rng.random() < _CAPPED:
        controller = replace(controller, caps="max-min", slack=rng.choice((1.0, 2.0)))
    return replace(scenario, job=jobs, controller=controller, fault=[*scenario.fault, *orders])


def _job(rng: random.Random, job: JobSpec) -> JobSpec:
    own = any_congestion(rng) if rng.random() < 0.5 else {}
    return replace(job, weight=rng.choice((1.0, 1.0, 0.1, 8.0)), congestion=own)
