"""Jobs of mode ``stream`` for the fuzzer: those of a scenario, whose lanes skip blocks of zeros."""

from __future__ import annotations

import random

from msgspec.structs import replace

from ina.p4.names import POOL, STREAM
from ina.sim.scenario import FaultSpec, JobSpec, LinkSpec, Scenario, SwitchSpec, TensorSpec

_ALSO = 0.7
"""Of the other jobs, which are of this mode, too; the rest are of mode ``pool``."""
_CHANGES = 0.15
"""Of the seeds, in which an operator asks for another mode, which is refused."""


def streaming(rng: random.Random, scenario: Scenario) -> Scenario:
    """The same network, whose switches run the program of streams, with some jobs that are ones.

    What the mode refuses by name goes: packed words, verified sums, and sparse sums and hooks,
    which are made of them. ``scenario`` has no slots that jobs share.
    """
    first = rng.randrange(len(scenario.job))
    jobs = [
        _stream(rng, job, scenario.values) if number == first or rng.random() < _ALSO else job
        for number, job in enumerate(scenario.job)
    ]
    # Where sums are not verified, who would notice a frame that is damaged?
    links = {key: _checking(getattr(scenario, key)) for key in ("link", "link_back", "link_up")}
    faults = [*scenario.fault, *_changes(rng, jobs)]
    return replace(scenario, job=jobs, switch=SwitchSpec(mode=STREAM), fault=faults, **links)


def _stream(rng: random.Random, job: JobSpec, values: int) -> JobSpec:
    few = rng.random() < 0.5  # lanes, so that each has many blocks
    return replace(
        job,
        mode=STREAM,
        verify=rng.choice(("", "off")),
        hook="",
        slots=rng.choice((2, 4, 8)) if few else job.slots,
        tensors=[_thinned(rng, it, values) for it in job.tensors],
    )


def _thinned(rng: random.Random, it: TensorSpec, values: int) -> TensorSpec:
    """As dense as it comes: without zeros, with hardly any, with hardly anything else, empty."""
    kept = 10.0 ** rng.uniform(-3.0, 0.0)
    zeros = rng.choice((0.0, 1.0, 1.0 - kept, 1.0 - kept, rng.random()))
    longer = rng.random() < 0.3  # with something to skip
    elems = rng.randint(it.elems, max(it.elems, 40 * values)) if longer else it.elems
    return replace(
        it, elems=elems, zeros=float(f"{zeros:.4g}"), wire="32", density=None, block_elems=64
    )


def _checking(link: LinkSpec | None) -> LinkSpec | None:
    return None if link is None else replace(link, frame_check=True)


def _changes(rng: random.Random, jobs: list[JobSpec]) -> list[FaultSpec]:
    """Of a job's mode, to and from this one."""
    if rng.random() >= _CHANGES:
        return []
    job, every_ms = rng.choice(jobs), 10.0 ** rng.uniform(0.3, 2.3)
    return [
        FaultSpec(
            what="resize",
            where=job.name,
            every_ms=float(f"{every_ms:.3g}"),
            slots=rng.choice((0, 2, 8, 64)),
            mode=mode,
        )
        for mode in (STREAM, POOL)
    ]
