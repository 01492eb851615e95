"""Placements for the fuzzer: trees by any policy; links and switches that operators take out."""

from __future__ import annotations

import random

from msgspec.structs import replace

from ina.sim.racks import joined
from ina.sim.scenario import FaultSpec, Scenario

PLACEMENTS = ("ina", "ina", "ina", "nearest", "panama", "goat", "single")


def routed(rng: random.Random, scenario: Scenario, end_ms: float) -> Scenario:
    """The same jobs over several switches, placed by some policy, with one to three repairs.

    Where nothing joins the switches nothing changes.
    """
    fabric = joined(scenario.build_topology())
    if not fabric.links:
        return scenario
    placement = rng.choice(PLACEMENTS)
    # Where switches make results themselves, jobs of mode shared have their roots there alone, and
    # that was drawn for the nearest.
    if scenario.switch.aggregators:
        placement = "nearest"
    links = ["-".join(link.switches) for link in fabric.links]
    controller = replace(
        scenario.controller,
        placement=placement,
        stripes=rng.choice((1, 2, 4, 8, 8, 16)),
    )
    repairs = [
        FaultSpec(
            what="repair",
            where=rng.choice([*links, *links, *fabric.switches]),
            at_ms=rng.uniform(1.0, end_ms / 2),
            for_ms=rng.uniform(1.0, end_ms / 2),
        )
        for _ in range(rng.choice((0, 1, 1, 2, 3)))
    ]
    return replace(scenario, controller=controller, fault=[*scenario.fault, *repairs])
