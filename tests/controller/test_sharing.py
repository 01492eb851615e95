"""Jobs of mode shared in the registry: who may have one, over what, and how much it may claim."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from ina.controller.config import TenantConfig
from ina.controller.errors import JobConflictError, NoRoomError
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.admission import Admission, usage
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.placement import Islands
from ina.controller.jobs.registry import Registry
from ina.controller.jobs.site import ControllerSite
from ina.controller.memory import FirstFit, SharedSlots
from ina.controller.store import IN_MEMORY, open_store
from ina.controller.switches.capacity import Capacity
from ina.fabric.graph import Fabric, Place
from ina.fabric.shapes import island
from ina.protocol.peer import Peer
from ina.trees.aggregators import AggregatorPlace, Aggregators
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.forest import forest_of
from ina.trees.nearest import Nearest
from ina.trees.slots import SlotRange
from ina.trees.tree import HostNode, single
from tests.worlds.fakes.racks import Racks, fabric, host
from tests.worlds.fakes.switches import placed_over

OWN, SHARED, JOB_SLOTS = 64, 32, 16
LANES = JOB_SLOTS // 2
AGGREGATOR = HostNode(0, Peer(IPv4Address("10.0.0.1"), 4400, 5), switch_port=4, uplink_port=1)
BEHIND = Place("s1", AGGREGATOR.switch_port)


def capacity() -> Capacity:
    return Capacity(FirstFit(OWN, JOB_SLOTS), values=64, shared=SharedSlots(OWN, SHARED))


def aggregator() -> Capacity:
    return Capacity(FirstFit(OWN, JOB_SLOTS), values=64, is_aggregator=True, is_switch=False)


def place(name: str, switch: str = "s1", port: int = 7) -> AggregatorPlace:
    return AggregatorPlace(name, switch, port, 3)


def islands(
    *,
    places: Sequence[AggregatorPlace] = (),
    tenant: TenantConfig | None = None,
    a_job: int = 1,
    **more: Capacity,
) -> Registry:
    """A switch s1 with shared slots, what else there is, and these aggregators, some for a job."""
    switches = {"s1": capacity(), **more, **{it.name: aggregator() for it in places}}
    return Registry(
        switches,
        EpochCounter(0),
        range(1, 100),
        site=ControllerSite(
            switches, Aggregators(Fabric(("s1",)), places), aggregators_a_job=a_job
        ),
        placement=lambda it: Islands(it, [island("s1", {AGGREGATOR.peer.address: BEHIND})]),
        admission=Admission({} if tenant is None else {"default": tenant}),
    )


def endpoint(rank: int, runs: HostNode | None = None) -> Endpoint:
    return Endpoint(Peer(IPv4Address("10.0.0.1"), 4000 + rank), 1, aggregator=runs)


def run(registry: Registry, name: str = "j", ranks: int = 2, *, embedded: bool = False) -> Job:
    job = registry.create(JobSpec(name, ranks, mode="shared"), 0.0)
    for rank in range(ranks):
        runs = AGGREGATOR if embedded and rank == 0 else None
        registry.join(name, rank, endpoint(rank, runs))
    registry.place(job)
    registry.installed(job)
    return job


def test_a_job_is_placed_below_the_aggregator_and_claims_as_many_slots_as_it_has_lanes() -> None:
    registry = islands(places=[place("agg")])
    job = run(registry)
    assert job.forest is not None
    assert [(it.switch, it.parent, it.parent_port, it.is_shared) for it in job.forest.trees[0]] == [
        ("agg", None, 0, False),
        ("s1", "agg", 7, True),
    ]
    assert job.forest.trees[0]["agg"].ports == (3,)
    assert job.memory == {"agg": SlotRange(0, 16, 16), "s1": SlotRange(OWN, 16, LANES)}
    assert (job.slots, job.window, job.mapping.forest.trees[0].full_bitmap) == (16, LANES, 3)
    assert (job.switch, job.island) == ("agg", "s1")
    assert (
        job.size_text() == "2 workers below agg, slots 0..15 of agg, 64..71 shared of s1, window 8"
    )
    assert usage([job]).slots == LANES
    registry.end(job)
    registry.removed(job)
    assert (registry.slots_used(), list(registry)) == (0, [])


@pytest.mark.parametrize(("a_job", "there", "used"), [(2, 2, 2), (2, 3, 2), (4, 3, 2), (4, 4, 4)])
def test_lanes_are_dealt_among_as_many_aggregators_as_there_are(
    a_job: int, there: int, used: int
) -> None:
    registry = islands(places=[place(f"agg{it}", port=7 + it) for it in range(there)], a_job=a_job)
    job = run(registry)
    assert job.forest is not None
    roots = [f"agg{it}" for it in range(used)]
    assert job.forest.switches == (roots[0], "s1", *roots[1:])
    assert [it.switch for it in job.forest.roots] == roots
    own = {name: SlotRange(0, JOB_SLOTS // used, JOB_SLOTS // used) for name in roots}
    assert job.memory == own | {"s1": SlotRange(OWN, JOB_SLOTS, LANES)}
    assert (job.slots, job.window, job.mapping.forest.trees[0].full_bitmap) == (JOB_SLOTS, LANES, 3)
    assert len(set(job.numbers)) == used
    # Each is the root of a tree of its own, whose lanes have slots of their own everywhere.
    parts = job.mapping.parts
    arcs = [part.memory["s1"] for part in parts]
    lanes = LANES // used
    assert arcs == [SlotRange(OWN + it * lanes, 2 * lanes, lanes) for it in range(used)]
    assert [part.number for part in parts] == list(job.mapping.numbers)
    assert {part.epoch for part in parts} == {job.epoch}
    for number, part in enumerate(parts):
        assert [(it.switch, it.parent, it.parent_port) for it in part.tree] == [
            (roots[number], None, 0),
            ("s1", roots[number], 7 + number),
        ]
        assert part.tree.path(1) == job.forest.trees[0].path(1)
        assert part.lanes == range(number * lanes, (number + 1) * lanes)
    assert usage([job]).slots == LANES
    (stored,) = _stored(job)
    assert (stored.forest, stored.memory, stored.numbers) == (job.forest, job.memory, job.numbers)
    again = islands(places=[place(f"agg{it}", port=7 + it) for it in range(there)], a_job=a_job)
    again.adopt(stored)
    assert again.slots_used() == registry.slots_used()
    for one, of in ((stored, again), (job, registry)):
        of.end(one)
        of.removed(one)
        assert of.slots_used() == 0
        assert of.numbers.are_free(range(1, 100))


def _stored(job: Job) -> list[Job]:
    store = open_store(IN_MEMORY)
    store.claim("test", "x").save(job, last_epoch=job.epoch)
    found = [it.job for it in store.load(0.0)]
    store.close()
    return found


def test_where_an_aggregator_or_a_number_lacks_nothing_is_taken() -> None:
    registry = islands(places=[place("agg1"), place("agg2")], a_job=2)
    registry.switches["agg2"].memory.take("other", OWN)
    with pytest.raises(NoRoomError, match="job 'j': no slots left"):
        registry.create(JobSpec("j", 2, mode="shared"), 0.0)
    assert registry.switches["agg1"].memory.used() == 0
    assert registry.numbers.are_free(range(1, 100))
    registry.numbers.claim(range(1, 99))
    with pytest.raises(NoRoomError, match="no job number is left for another tree"):
        registry.create(JobSpec("j", 2, mode="shared"), 0.0)
    assert registry.numbers.are_free([99])


def test_without_an_aggregator_rank_0_runs_it() -> None:
    registry = islands()
    assert registry.site.is_embedded
    job = run(registry, embedded=True)
    assert job.forest is not None
    assert (job.forest.root.host, job.forest.root.nodes) == (AGGREGATOR, ("s1",))
    assert job.forest.trees[0]["s1"].parent_port == AGGREGATOR.switch_port
    assert job.memory == {"s1": SlotRange(OWN, 16, LANES)}


def test_where_rank_0_runs_none_all_hear_it() -> None:
    registry = islands()
    job = registry.create(JobSpec("j", 1, mode="shared"), 0.0)
    registry.join("j", 0, endpoint(0))
    with pytest.raises(
        JobRequestError, match=r"'shared' wants an aggregator: .* rank 0 runs none$"
    ):
        registry.place(job)


def test_the_first_who_creates_it_says_the_mode() -> None:
    registry = islands(places=[place("agg")])
    job = registry.create(JobSpec("j", 2, mode="shared"), 0.0)
    assert registry.create(JobSpec("j", 2), 0.0) is job
    with pytest.raises(JobConflictError, match="job 'j' has mode 'shared', not 'pool'"):
        registry.create(JobSpec("j", 2, mode="pool"), 0.0)
    with pytest.raises(JobRequestError, match="job 'k': no mode 'atp': use pool or shared"):
        registry.create(JobSpec("k", 2, mode="atp"), 0.0)


def test_a_job_that_does_not_ask_has_the_usual_mode() -> None:
    switches = {"s1": capacity(), "agg": aggregator()}
    places = Aggregators(Fabric(("s1",)), [place("agg")])
    site = ControllerSite(switches, places, "shared")
    registry = Registry(switches, EpochCounter(0), range(1, 9), site=site)
    assert registry.create(JobSpec("j", 2), 0.0).mode == "shared"
    assert registry.create(JobSpec("k", 2, mode="pool"), 0.0).mode == "pool"


def test_jobs_of_both_modes_share_a_switch_and_none_is_put_on_an_aggregator() -> None:
    registry = islands(places=[place("agg")])
    for name in ("a", "b", "c", "d"):
        assert registry.create(JobSpec(name, 2), 0.0).memory.keys() == {"s1"}
    with pytest.raises(NoRoomError):  # though the aggregator has room
        registry.create(JobSpec("e", 2), 0.0)
    shared = [run(registry, f"s{number}") for number in range(4)]
    arcs = {(it.memory["s1"].first, it.memory["s1"].reserved) for it in shared}
    assert arcs == {(OWN + 8 * number, 8) for number in range(4)}
    with pytest.raises(NoRoomError, match="job 's5'"):  # the aggregator has none left
        registry.create(JobSpec("s5", 2, mode="shared"), 0.0)
    assert registry.victims(JobSpec("s5", 2, priority=9, mode="shared"), 0) == []


def test_a_switch_of_mode_pool_is_passed_over_or_refuses() -> None:
    pool = Capacity(FirstFit(OWN, JOB_SLOTS))
    registry = islands(places=[place("agg", "s2")], s1=pool, s2=capacity())
    aggregators = Aggregators(Fabric(("s1", "s2")), [place("agg", "s2")])
    registry.site = ControllerSite(registry.switches, aggregators)
    assert registry.create(JobSpec("j", 2, mode="shared"), 0.0).island == "s2"
    registry = islands(s1=Capacity(FirstFit(OWN, JOB_SLOTS)))
    why = "mode 'shared', and switch 's1' runs the program of mode 'pool': give it mode = 'shared'"
    with pytest.raises(JobRequestError, match=why):
        registry.create(JobSpec("j", 2, mode="shared"), 0.0)


def test_a_tenant_claims_no_more_than_its_quota_leaves() -> None:
    registry = islands(places=[place("agg")], tenant=TenantConfig(slots=12))
    first, second, third = (run(registry, name) for name in "abc")
    claimed = [it.memory["s1"].reserved for it in (first, second, third)]
    assert claimed == [8, 4, 0]  # the third has all of its sums at the aggregator
    assert third.size_text().endswith("none of s1, window 8")
    assert registry.admission.slots_left("default", registry) == 0
    registry.end(first)
    registry.removed(first)
    assert run(registry, "d").memory["s1"].reserved == 8


def test_the_nearest_aggregator_that_is_reached_is_taken_and_kept() -> None:
    reached = {"far": True, "near": True}
    places = [place("far", "spine"), place("near", "leaf1")]
    switches = {name: capacity() for name in ("leaf1", "leaf2", "spine")}
    switches["far"] = replace(aggregator(), is_reached=lambda: reached["far"])
    switches["near"] = replace(aggregator(), is_reached=lambda: reached["near"])
    above = Aggregators(fabric(), places)
    assert [(it.node.switch, it.port) for it in above.above("leaf1")] == [("near", 7), ("far", 9)]
    assert [(it.node.switch, it.port) for it in above.above("leaf2")] == [("far", 9), ("near", 9)]
    site, port_to = ControllerSite(switches, above), Nearest(fabric()).port_to
    job = Job(JobSpec("j", 2, mode="shared"), 1, 0.0)
    assert site.forest(job, forest_of(single("leaf1", 2)), port_to).root.switch == "near"
    reached["near"] = False
    assert site.forest(job, forest_of(single("leaf1", 2)), port_to).root.switch == "far"
    over = site.forest(job, forest_of(single("leaf1", 2)), port_to)
    memory = {"near": SlotRange(0, 16, 16)}  # it has slots there: it must be there
    job.placed = replace(placed_over(over, memory, 1, 0), mode="shared")
    assert site.forest(job, forest_of(single("leaf1", 2)), port_to).root.switch == "near"


def test_an_aggregator_that_no_path_leads_to_is_none() -> None:
    switches = {"s1": capacity(), "s2": capacity(), "agg": aggregator()}
    site = ControllerSite(switches, Aggregators(Fabric(("s1", "s2")), [place("agg")]))
    job = Job(JobSpec("j", 2, mode="shared"), 1, 0.0)
    with pytest.raises(JobRequestError, match="none is to be reached from switch 's2'"):
        site.forest(job, forest_of(single("s2", 2)), Nearest(Fabric(("s1", "s2"))).port_to)


async def test_over_racks_all_switches_are_shared_below_one_that_is_an_aggregator() -> None:
    racks = Racks("shared")
    await racks.start()
    for name in ("leaf1", "leaf2", "spine"):
        racks.registry.switches[name].shared = SharedSlots(OWN, SHARED)
    racks.registry.switches["spine"].is_aggregator = True
    await racks.coordinator.create(JobSpec("j", 4, mode="shared"), 0.0)
    joins = [
        racks.coordinator.join(
            "j",
            rank,
            Endpoint(Peer(host(leaf, 1 + rank), 4000), 1 + rank, switch=f"leaf{leaf}"),
            9.0,
        )
        for rank, leaf in enumerate((1, 1, 2, 2))
    ]
    (job, *_) = await asyncio.gather(*joins)
    assert job.state is JobState.RUNNING
    assert job.forest is not None
    assert {it.switch: it.is_shared for it in job.forest.trees[0]} == {
        "spine": False, "leaf1": True, "leaf2": True
    }  # fmt: skip
    assert job.mapping.forest.trees[0].full_bitmap == 0b1111
    racks.assert_agrees()
    # A switch that lost its registers lost nothing that anybody needs; the root has.
    for name in ("leaf1", "spine"):
        await racks.reconcile(name, fresh=True)
        assert job.state is (JobState.RUNNING if name == "leaf1" else JobState.LEAVING)
    await racks.until_idle()
    assert list(racks.registry) == []
    assert all(it.shared.used() == 0 for it in racks.registry.switches.values() if it.shared)


@pytest.mark.parametrize("embedded", [False, True])
def test_it_comes_back_from_the_store_as_it_was(embedded: bool) -> None:
    places = [] if embedded else [place("agg")]
    registry = islands(places=places)
    job = run(registry, embedded=embedded)
    (found,) = _stored(job)
    assert (found.mode, found.forest, found.memory) == ("shared", job.forest, job.memory)
    again = islands(places=places)
    again.adopt(found)
    assert again.slots_used() == registry.slots_used()
    again.end(found)
    again.removed(found)
    assert again.slots_used() == 0
