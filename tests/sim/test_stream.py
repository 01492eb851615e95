"""Jobs of mode stream in the virtual network: core, program and controller that ship."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ina.p4 import names
from ina.sim.errors import ScenarioError
from ina.sim.minimise import minimise
from ina.sim.reading import check
from ina.sim.run import Simulation
from ina.sim.scenario import (
    Dtype,
    FaultSpec,
    JobSpec,
    Kind,
    LinkSpec,
    Scenario,
    SwitchSpec,
    TensorSpec,
    TopologySpec,
)
from tests.selection import examples

DTYPES: tuple[Dtype, ...] = ("float32", "float16", "bfloat16", "int32")
KINDS: tuple[Kind, ...] = (
    *("all_reduce", "all_reduce", "all_gather", "reduce_scatter", "broadcast", "barrier"),
)


def drawn(seed: int) -> Scenario:
    """A job of any size, on one switch or in two racks, whose tensors have any density."""
    rng = random.Random(seed)
    racks = rng.choice((1, 1, 2))
    tensors = [
        TensorSpec(
            elems=rng.choice((5, 50, 3_000, 40_000)),
            dtype=rng.choice(DTYPES),
            op=rng.choice(("sum", "avg")),
            root=rng.choice((None, None, 0)),
            zeros=rng.choice((1.0, 0.98, 0.8, rng.random(), 0.0)),
        )
        for _ in range(rng.randint(1, 3))
    ]
    kinds = [rng.choice(KINDS) if it.root is None else it.kind for it in tensors]
    tensors = [
        replace(it, kind=kind, elems=0 if kind == "barrier" else it.elems)
        for it, kind in zip(tensors, kinds, strict=True)
    ]
    job = JobSpec(
        workers=2 * rng.randint(1, 3),
        mode=names.STREAM,
        racks=racks,
        slots=rng.choice((2, 8, 32)),
        steps=rng.randint(1, 3),
        wraps_after=rng.choice((0, 40)),
        tensors=tensors,
    )
    topology = TopologySpec(hosts=8)
    if racks == 2:
        topology = TopologySpec(kind="racks", racks=[4, 4])
    loss = rng.choice((0.0, 0.02))
    link = LinkSpec(rate_gbit=1, loss=loss, duplication=loss, reordering=loss, reordering_us=200)
    switch = SwitchSpec(mode=names.STREAM)
    return Scenario(topology=topology, link=link, switch=switch, job=[job], limit_s=60)


@pytest.mark.parametrize("seed", range(examples(80)))
def test_sums_are_right_to_the_bit(seed: int) -> None:
    """However dense tensors are, on one switch and in racks, with losses and without."""
    scenario = drawn(seed)
    report = Simulation(scenario, seed=seed).run()
    (job,) = report.jobs
    assert report.violations == []
    assert (job.ended, job.steps_done) == ("", scenario.job[0].steps)


def test_what_all_ranks_have_zeros_in_is_not_sent() -> None:
    def packets(density: float) -> int:
        tensor = TensorSpec(elems=64_000, zeros=1.0 - density)
        job = JobSpec(workers=2, mode=names.STREAM, slots=8, steps=1, tensors=[tensor])
        switch = SwitchSpec(mode=names.STREAM)
        scenario = Scenario(switch=switch, job=[job], limit_s=60)
        return Simulation(scenario, seed=1).run().jobs[0].packets_sent

    runs, lanes, blocks = 64_000 // 256, 4, 64_000 // 63
    some = packets(0.05)
    assert packets(0.0) == 2 * 2 * lanes  # an exponent, and the first block
    assert some < 2 * (0.2 * runs * 6 + 2 * lanes)
    assert packets(1.0) >= 2 * blocks


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ({"tensors": [TensorSpec(elems=9, wire="16")]}, "mode 'stream', wire: values travel"),
        ({"tensors": [TensorSpec(elems=9, zeros=1.5)]}, r"zeros = 1\.5: want 0 to 1"),
        ({"tensors": [TensorSpec(elems=9, density=0.5)]}, "density: lanes find blocks"),
        ({"verify": "keyed"}, "mode 'stream', verify: a sum of checks"),
        ({"tensors": [TensorSpec(elems=9)], "hook": "topk"}, "mode 'stream', hook: its sums"),
    ],
)
def test_what_it_has_not_is_refused(job: dict[str, Any], says: str) -> None:
    spec = JobSpec(workers=2, mode=names.STREAM, **job)
    scenario = Scenario(switch=SwitchSpec(mode=names.STREAM), job=[spec])
    with pytest.raises(ScenarioError, match=says):
        check(scenario)


def test_a_scenario_that_fails_is_made_small() -> None:
    """To one job, which is a stream, and has zeros, only where that matters."""
    tensor = TensorSpec(elems=300, zeros=0.5)
    jobs = [
        JobSpec(name=name, workers=2, mode=names.STREAM, hosts=["h1", "h2"], tensors=[tensor])
        for name in "ab"
    ]
    change = FaultSpec(what="resize", where="a", every_ms=5.0, mode=names.POOL)
    switch = SwitchSpec(mode=names.STREAM)
    scenario = Scenario(switch=switch, job=jobs, fault=[change])
    check(scenario)

    def small(fails: Callable[[Scenario], bool]) -> tuple[Scenario, JobSpec]:
        least = minimise(scenario, fails)
        (job,) = least.job
        return least, job

    any_job, one = small(lambda _it: True)
    assert (any_job.switch.mode, one.mode, one.tensors[0].zeros) == (names.POOL, names.POOL, 0.0)
    stream, one = small(lambda it: any(job.mode == names.STREAM for job in it.job))
    assert (stream.switch.mode, one.mode, one.tensors[0].zeros) == (switch.mode, switch.mode, 0.0)
    assert (any_job.fault, stream.fault) == ([], [])


def test_it_wants_its_program() -> None:
    with pytest.raises(ScenarioError, match=r"want switch\.mode = 'stream', too"):
        check(Scenario(job=[JobSpec(workers=2, mode=names.STREAM)]))
