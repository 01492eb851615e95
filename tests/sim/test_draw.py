"""What the fuzzer draws: all kinds of scenarios, none of which takes a hundred times as long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from ina.p4.names import POOL, ROCE, STREAM, TRANSPARENT
from ina.sim.draw import draw
from ina.sim.draw_bounded import MOST_HOPS, bounded, hops
from ina.sim.scenario import (
    ControllerSpec,
    FaultSpec,
    JobSpec,
    Scenario,
    TensorSpec,
    TopologySpec,
)

SEEDS = 300
KINDS = {
    *("star", "racks", "graph"),
    *("mode pool", "mode shared", "mode stream", "stream beside pool"),
    *("mode roce", "NICs in a tree", "mode transparent", "a ring without power"),
    *("results of the fabric", "results in rank 0", "several results"),
    *("resize to stream", "zeros", "zeros alone", "a stream without zeros", "a stream in a tree"),
    *("link_down", "pause", "crash", "power_cycle", "controller_kill", "controller_cut"),
    *("resize", "resize to pool", "resize to shared", "windows", "repair", "standby", "quotas"),
    *("far", "epochs wrap", "numbers wrap", "trains", "multicast", "marks", "caps", "traffic"),
    *("verify ", "verify off", "verify accidents", "verify keyed", "bits flip", "one host"),
    *("sum", "avg", "one rank's", "nothing", "three windows", "in rows", "late", "at once"),
    *("float32", "float16", "bfloat16", "int32", "64", "256", "360", "1024", "56", "248", "1016"),
    *("hook lowbit8", "hook lowbit16", "hook topk"),
    *("sparse", "of no density", "of any density", "blocks of packets", "other blocks"),
}


def kinds(it: Scenario) -> Iterator[str]:
    yield from (it.topology.kind, f"mode {it.switch.mode}", str(it.values))
    yield from (fault.what for fault in it.fault)
    yield from (f"resize to {fault.mode}" for fault in it.fault)
    named = {
        "results of the fabric": it.switch.aggregators,
        "results in rank 0": any(one.job for one in it.aggregator),
        "several results": it.controller.aggregators > 1,
        "standby": it.controller.standbys,
        "quotas": it.controller.quotas,
        "far": it.limit_s > 200,
        "epochs wrap": it.controller.last_epoch,
        "trains": it.host.trains,
        "multicast": it.multicast,
        "marks": it.ecn_packets,
        "caps": it.controller.caps != "none",
        "traffic": it.traffic,
        "bits flip": not it.link.frame_check,
        "stream beside pool": it.switch.mode == STREAM and POOL in [job.mode for job in it.job],
        "NICs in a tree": it.switch.mode == ROCE and it.topology.kind != "star",
        "a ring without power": it.switch.mode == TRANSPARENT
        and any(fault.what == "power_cycle" for fault in it.fault),
        "a stream in a tree": it.switch.mode == STREAM and it.topology.kind != "star",
    }
    yield from (name for name, has in named.items() if has)
    for job in it.job:
        yield from (f"verify {job.verify}", "late" if job.straggler.mean_ms else "at once")
        yield f"hook {job.hook}"
        if job.wraps_after:
            yield "numbers wrap"
        if len(set(job.hosts)) < job.workers:
            yield "one host"
        for tensor in job.tensors:
            yield from (tensor.op, tensor.dtype, "in rows" if tensor.count > 1 else "sum")
            if tensor.root is not None:
                yield "one rank's"
            if job.mode == STREAM and tensor.zeros == 0.0:
                yield "a stream without zeros"
            if tensor.zeros > 0.0:
                yield "zeros" if tensor.zeros < 1.0 else "zeros alone"
            if tensor.elems == 0:
                yield "nothing"
            if tensor.density is not None:
                yield from ("sparse", "of any density" if tensor.density else "of no density")
                yield "blocks of packets" if tensor.block_elems == it.values else "other blocks"
            if job.slots > 2 and tensor.elems >= (3 * job.slots // 2 - 1) * it.values:
                yield "three windows"


def test_all_kinds_are_drawn() -> None:
    found = {kind for seed in range(SEEDS) for kind in kinds(draw(seed))}
    assert KINDS - found == set()


def test_what_is_drawn_is_no_more_than_a_core_does_soon() -> None:
    for seed in range(SEEDS):
        drawn = draw(seed)
        assert sum(hops(job, drawn.values, 2) for job in drawn.job) <= MOST_HOPS, seed
        assert all(fault.every_growth > 1 for fault in drawn.fault if fault.every_ms > 0)


@pytest.mark.parametrize(
    ("job", "steps", "elems"),
    [
        (JobSpec(workers=4, steps=6, tensors=[TensorSpec(elems=64 * 100)]), 6, 6_400),
        (JobSpec(workers=32, steps=12, tensors=[TensorSpec(elems=64 * 300)]), 3, 19_200),
        (JobSpec(workers=32, steps=1, tensors=[TensorSpec(elems=64 * 3_000)]), 1, 59_968),
        (JobSpec(workers=32, steps=9, slots=512, tensors=[TensorSpec(elems=10**6)]), 2, 49_152),
    ],
    ids=["as it is", "fewer steps", "one step", "three windows"],
)
def test_a_large_job_has_fewer_steps_then_smaller_tensors(
    job: JobSpec, steps: int, elems: int
) -> None:
    (found,) = bounded(Scenario(topology=TopologySpec(hosts=32), job=[job])).job
    assert (found.steps, found.tensors[0].elems) == (steps, elems)
    assert found == replace(job, steps=steps, tensors=found.tensors)


def test_orders_that_come_again_become_seldom() -> None:
    once = FaultSpec(what="resize", where="job", at_ms=1.0, slots=4)
    again = replace(once, at_ms=-1.0, every_ms=2.0)
    first, second = bounded(Scenario(job=[JobSpec(workers=1)], fault=[once, again])).fault
    assert first == once
    assert second.every_growth > 1


@pytest.mark.parametrize(("workers", "lease_s"), [(4, 1.0), (16, 2.0), (32, 4.0), (64, 5.0)])
def test_many_workers_have_longer_leases(workers: int, lease_s: float) -> None:
    drawn = Scenario(controller=ControllerSpec(lease_s=1.0), job=[JobSpec(workers=workers)])
    assert bounded(drawn).controller.lease_s == lease_s
