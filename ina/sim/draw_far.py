"""Networks for the fuzzer whose round trips are longer than any resend timer: to seconds a hop."""

from __future__ import annotations

import random

from msgspec.structs import replace

from ina.sim.scenario import Dtype, JobSpec, LinkSpec, Scenario, TensorSpec

FAR_LIMIT_S = 250.0
"""Of virtual time: so long before links are mended a job that starves gives up."""
_MOST_ELEMS = 20_000
_DTYPES: tuple[Dtype, ...] = ("float32", "float32", "float16", "int32")


def far(rng: random.Random, scenario: Scenario) -> Scenario:
    """The same jobs, with more to send, on links that take up to a second and scatter by half."""
    links = {
        key: _far_link(rng) if getattr(scenario, key) else None for key in ("link_back", "link_up")
    }
    return replace(
        scenario,
        limit_s=FAR_LIMIT_S,
        link=_far_link(rng),
        congestion={} if rng.random() < 0.5 else scenario.congestion,
        job=[_job(rng, job) for job in scenario.job],
        traffic=[],
        **links,
    )


def _far_link(rng: random.Random) -> LinkSpec:
    def sometimes(least: float, most: float) -> float:
        return _log(rng, least, most) if rng.random() < 0.6 else 0.0

    reordering = sometimes(0.01, 0.3)
    return LinkSpec(
        rate_gbit=rng.choice((0.1, 1.0, 1.0, 10.0)),
        delay_us=_log(rng, 1_000.0, 1_000_000.0),
        jitter_us=sometimes(10_000.0, 500_000.0),
        loss=sometimes(0.001, 0.05),
        duplication=sometimes(0.001, 0.2),
        reordering=reordering,
        reordering_us=_log(rng, 10_000.0, 2_000_000.0) if reordering else 0.0,
        queue_kib=rng.choice((512.0, 1024.0)),
    )


def _job(rng: random.Random, job: JobSpec) -> JobSpec:
    tensors = [
        TensorSpec(elems=rng.choice((257, 700, _MOST_ELEMS)), dtype=rng.choice(_DTYPES))
        for _ in range(rng.randint(1, 3))
    ]
    return replace(job, tensors=[*job.tensors[:1], *tensors], steps=rng.randint(4, 12))


def _log(rng: random.Random, least: float, most: float) -> float:
    """As likely between 1 and 10 as between 10 and 100."""
    return float(f"{least * (most / least) ** rng.random():.3g}")
