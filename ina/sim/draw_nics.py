"""Jobs of RDMA NICs for the fuzzer: those of a scenario, whose packets are SENDs of RoCEv2."""

from __future__ import annotations

import random

from msgspec.structs import replace

from ina.p4.builds import builds_of
from ina.p4.names import ROCE, TRANSPARENT
from ina.sim.scenario import FaultSpec, JobSpec, LinkSpec, Scenario, SwitchSpec

_RINGS = 0.8
"""Of the seeds with one switch, whose jobs are rings of reliable connections."""
_REBOOTS = 0.2
"""Of the seeds, in which a switch loses its power about when jobs begin: a ring then lacks what was
acknowledged."""
_DAMAGED = 0.4
"""Of the seeds, where nobody but a NIC's own check finds what is damaged."""


def over_nics(rng: random.Random, scenario: Scenario) -> Scenario:
    """The same network, whose switches run a program for NICs, with all jobs of its mode.

    ``scenario`` has no slots that jobs share, and no streams.
    """
    is_ring = scenario.topology.kind == "star" and rng.random() < _RINGS
    mode = TRANSPARENT if is_ring else ROCE
    jobs = [_job(rng, job, mode) for job in scenario.job]
    links = {}
    if rng.random() < _DAMAGED:
        links["link"] = _damaging(rng, scenario.link)
    return replace(
        scenario,
        values=rng.choices(builds_of(mode), (6, 3, 1))[0],
        switch=SwitchSpec(mode=mode),
        job=jobs,
        multicast=False,
        fault=[*scenario.fault, *_reboots(rng, scenario)],
        **links,
    )


def _job(rng: random.Random, job: JobSpec, mode: str) -> JobSpec:
    """Of a ring each two slots have connections, and rows, of their own: few, to be quick."""
    few = job.slots if 0 < job.slots <= 64 else rng.choice((2, 8, 32))
    return replace(job, mode=mode, slots=few if mode == TRANSPARENT else job.slots)


def _reboots(rng: random.Random, scenario: Scenario) -> list[FaultSpec]:
    if rng.random() >= _REBOOTS:
        return []
    return [
        FaultSpec(
            what="power_cycle",
            where=rng.choice(scenario.build_topology().of_kind("p4")),
            at_ms=float(f"{50.0 * 40 ** rng.random():.3g}"),
            for_ms=float(f"{0.1 * 1000 ** rng.random():.3g}"),
        )
    ]


def _damaging(rng: random.Random, link: LinkSpec) -> LinkSpec:
    share = float(f"{0.0005 * 100 ** rng.random():.3g}")
    return replace(link, frame_check=False, corruption=share)
