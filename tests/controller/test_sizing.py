"""Who gets how many slots, who waits and who is resized, with a coordinator."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ina.controller import retry
from ina.controller.change import Word
from ina.controller.config import TenantConfig
from ina.controller.errors import NoRoomError, QueuedError, QuotaError
from ina.controller.job import Job, JobSpec
from ina.controller.jobs import rounds
from ina.controller.jobs.admission import Admission
from ina.controller.jobs.events import QUEUE_EVENTS, job_event
from ina.controller.memory.demand import Demand, StepModel
from ina.controller.memory.resizes import MOST, REFILL_S
from ina.controller.slots import rebalancer
from ina.controller.slots.queue import KEPT_S, SlotQueue
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.changing import ask
from tests.worlds.fakes.sizing import Bench


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(retry, "MAX_PAUSE_S", 0.001)
    monkeypatch.setattr(rounds, "GATHER_S", 0.0)
    monkeypatch.setattr(rebalancer, "PERIOD_S", 0.01)


async def test_a_short_job_gets_slots_of_a_long_one_and_gives_them_back() -> None:
    bench = Bench("jct")
    await bench.start()
    long = await bench.run("long")
    assert long.slots == 16  # what is usual, as nobody knows it yet
    bench.learn(long, 32, steps=100_000)
    await bench.settle()
    assert long.slots == 64
    short = await bench.run("short")
    assert (long.slots, short.slots) == (32, 16)  # room was made for it
    bench.learn(short, 16, steps=200)
    await bench.settle()
    assert (long.slots, short.slots) == (32, 32)
    await bench.racks.coordinator.evict("short", "a test")
    await bench.settle()
    assert long.slots == 64
    assert bench.told("grow") == [("long", 16, 64), ("short", 16, 32), ("long", 32, 64)]
    assert bench.told("shrink") == [("long", 64, 32)]
    assert bench.told("grant") == [("long", 0, 16), ("short", 0, 16)]


async def test_an_important_job_leaves_others_their_floors() -> None:
    bench = Bench("priority")
    await bench.start()
    low = await bench.run("low")
    bench.learn(low, 32)
    await bench.settle()
    high = await bench.run("high", priority=5)
    bench.learn(high, 24)
    await bench.settle()
    assert (low.slots, high.slots) == (32, 32)  # 64 would be of use to it, 60 are there
    bench.learn(low, 1)  # its communication has become small: the floor will do
    assert bench.memory.sizing.targets() == {}  # and nobody needs the rest


async def test_who_finds_nothing_waits_and_is_served_in_the_order_of_the_policy() -> None:
    bench = Bench("equal", floor=32, slots=32)
    await bench.start()
    await bench.run("a")
    await bench.run("b")
    first = await bench.join("first", queue_s=100.0)
    bench.now_s = 1.0
    second = await bench.join("second", queue_s=100.0)
    await bench.settle()
    assert [it.name for it in bench.memory.queue.demands()] == ["first", "second"]
    for victim, calls in (("a", first), ("b", second)):
        assert not calls[0].done()
        await bench.racks.coordinator.evict(victim, "a test")
        bench.memory.queue.wake()
        assert (await calls[0]).slots == 32
    assert [name for name, _, _ in bench.told("wait")] == ["first", "second"]
    assert not bench.memory.queue.demands()


async def test_who_has_waited_for_long_enough_is_refused_with_numbers() -> None:
    bench = Bench("equal", floor=32, slots=32)
    await bench.start()
    await bench.run("a")
    await bench.run("b")
    calls = await bench.join("late", queue_s=5.0)
    await bench.settle()
    bench.now_s = 6.0
    bench.memory.queue.wake()
    waited = r"'late': no slots left.*\(64 of 64 are in use\).*\(6 s in the queue, 0 jobs"
    with pytest.raises(NoRoomError, match=waited):
        await calls[0]
    (refused,) = [it for it in bench.memory.decisions.of("late") if it.what == "refuse"]
    assert "(6 s in the queue, 0 jobs before it)" in refused.reason
    await asyncio.gather(*calls, return_exceptions=True)


async def test_who_does_not_wait_does_not_overtake_who_does() -> None:
    bench = Bench("equal", floor=32, slots=32)
    await bench.start()
    await bench.run("a")
    await bench.run("b")
    calls = await bench.join("waits", queue_s=100.0)
    await bench.settle()
    bench.now_s = 1.0
    with pytest.raises(NoRoomError, match="1 job waits for slots before it, the first is 'wai"):
        bench.memory.sized(Job(JobSpec("new", 2), 9, 0.0), ())
    await bench.racks.coordinator.evict("waits", "a test")
    await asyncio.gather(*calls, return_exceptions=True)


async def test_a_job_that_shares_slots_waits_as_it_asked_and_nobody_waits_behind_it() -> None:
    bench = Bench("equal")
    await bench.start()
    memory, full = bench.memory, NoRoomError("the aggregator is full")
    spec = JobSpec("shared", 2, mode="shared", queue_s=5.0)
    waits = asyncio.create_task(memory.wait(spec, full, None, 9.0))
    await asyncio.sleep(0)
    assert memory.sized(Job(JobSpec("new", 2), 9, 0.0), ()) > 0
    bench.now_s = 5.0
    memory.queue.wake()
    await waits
    with pytest.raises(NoRoomError, match=r"full \(5 s in the queue, 0 jobs before it\)"):
        await memory.wait(spec, full, None, 9.0)
    with pytest.raises(NoRoomError, match=r"full$"):  # for no policy gives it any
        await memory.wait(replace(spec, queue_s=0.0), full, None, 9.0)


async def test_a_job_that_will_not_be_resized_is_left_alone_for_a_while() -> None:
    bench = Bench("equal")
    await bench.start()
    job = await bench.run("j")
    bench.learn(job, 32)
    await bench.rebalancer.rebalance()
    assert job.change is not None
    bench.rebalancer.start()
    await asyncio.sleep(0)
    word = Word(job.change.other.epoch, declined=True, reason="it is old")
    ask(bench.racks, job, 1)
    ask(bench.racks, job, 0, word)
    while not bench.told("fail"):
        await asyncio.sleep(0)
    await bench.rebalancer.close()
    while job.change is not None:
        await asyncio.sleep(0)
    assert bench.memory.sizing.targets() == {}
    (failed,) = [it for it in bench.memory.decisions.of("j") if it.what == "fail"]
    assert "rank 0 declines: it is old; left alone for 30 s" in failed.reason
    bench.now_s = 31.0
    assert bench.memory.sizing.targets() == {job: 64}


async def test_small_ranges_move_out_of_the_way_of_a_large_one() -> None:
    bench = Bench("jct", slots=4, floor=4)
    await bench.start()
    jobs = [await bench.run(name) for name in ("a", "b", "c", "d", "e")]
    for name in ("a", "b", "d"):
        await bench.racks.coordinator.evict(name, "a test")
    large, small = jobs[2], jobs[4]
    bench.learn(small, 1)
    bench.learn(large, 16)
    assert [it.memory["leaf1"].first for it in (large, small)] == [8, 16]
    await bench.settle()
    assert (large.slots, small.slots) == (32, 4)
    bench.learn(large, 32, steps=2000)
    # All but the floor of the small one: 32 side by side are there, and 60 are not.
    await bench.settle()
    assert large.slots == 32


async def test_slots_that_a_change_frees_are_shared_out_before_it_is_over() -> None:
    bench = Bench("equal", slots=8)
    await bench.start()
    long, other, third = [await bench.run(name) for name in ("long", "other", "third")]
    bench.learn(long, 16)
    bench.learn(third, 4)
    await bench.settle()
    assert (long.slots, other.slots, third.slots) == (32, 8, 8)
    bench.learn(other, 16)
    await bench.racks.coordinator.changes.resize("long", 8, "a test")
    # 8 are free, and 32 when the long one has shrunk.
    assert bench.memory.sizing.targets() == {other: 32}
    await bench.rebalancer.rebalance()
    assert other.change is None  # rather than grow twice


async def test_who_waits_is_served_after_more_has_happened_at_once_than_is_heard() -> None:
    bench = Bench("equal", floor=32, slots=32)
    await bench.start()
    await bench.run("a")
    b = await bench.run("b")
    calls = await bench.join("late", queue_s=100.0)
    await bench.settle()
    bench.rebalancer.start()
    events = bench.racks.coordinator.events
    for lost in (False, True):
        await asyncio.sleep(0.01)
        for _ in range(QUEUE_EVENTS + 1 if lost else 1):
            events.publish(job_event(pb2.MEMBER_JOINED, b))
    await asyncio.sleep(0.01)
    assert not calls[0].done()
    await bench.racks.coordinator.evict("a", "a test")
    assert (await asyncio.wait_for(calls[0], 60.0)).slots == 32
    await bench.rebalancer.close()


async def test_a_job_that_comes_again_is_known() -> None:
    bench = Bench("equal")
    await bench.start()
    job = await bench.run("j")
    assert job.slots == 16  # what is usual
    bench.learn(job, 32)
    await bench.racks.coordinator.evict("j", "a test")
    await bench.settle()
    assert bench.memory.sizing.grant(JobSpec("j", 2)) == 64
    assert bench.memory.sizing.grant(JobSpec("k", 2)) == 16


async def test_who_has_used_up_its_changes_is_left_as_it_is() -> None:
    bench = Bench("equal")
    await bench.start()
    job = await bench.run("j")
    bench.learn(job, 32)
    assert bench.memory.sizing.targets() == {job: 64}
    for _ in range(MOST):
        bench.memory.sizing.resized(job)
    assert bench.memory.sizing.targets() == {}
    bench.now_s = REFILL_S + 1.0
    # One has come back.
    assert bench.memory.sizing.targets() == {job: 64}


def test_places_in_the_queue() -> None:
    now_s = 0.0
    queue = SlotQueue(lambda waiting: sorted(waiting, key=lambda it: -it.priority), lambda: now_s)

    def demand(name: str, priority: int) -> Demand:
        return Demand(name, StepModel(1.0, 1.0, 1.0, 1.0), 1.0, priority=priority)

    low, high, mine = demand("low", 0), demand("high", 2), demand("mine", 1)
    place = queue.enter(low, 60.0)
    queue.enter(high, 60.0).stands_aside = True
    assert queue.ahead(mine) == []  # what high waits for is not slots
    queue.enter(high, 60.0).stands_aside = False
    assert queue.ahead(mine) == ["high"]
    assert queue.ahead(low) == ["high"]
    now_s = KEPT_S - 1.0
    assert queue.enter(low, 99.0) is place  # asked again: it keeps its place, and its time
    assert place.ends_s == 60.0
    now_s = KEPT_S + 1.0
    assert queue.ahead(demand("last", -1)) == ["low"]  # nobody has asked for high
    queue.leave("low")
    assert place.woken.is_set() is False
    assert len(queue) == 0


def test_quotas_do_not_hold_up_others() -> None:
    admission = Admission({"t": TenantConfig(slots=8)})
    with pytest.raises(QuotaError, match="quota of tenant 't'"):
        admission.check_quota(JobSpec("j", 1, tenant="t"), {"": 16}, [])


def test_over_a_tree_a_policy_gives_as_many_as_the_quota_leaves_on_each_switch() -> None:
    async def scenario(policy: str, quota: int) -> Job:
        bench = Bench(policy)
        await bench.start()
        racks = bench.racks
        racks.registry.admission = Admission({"default": TenantConfig(slots=quota)})
        job = await racks.coordinator.create(JobSpec("j", 2), 0.0)
        await asyncio.gather(*await racks.join_all("j", (1, 2)))
        return job

    assert asyncio.run(scenario("priority", 48)).slots == 16
    assert asyncio.run(scenario("priority", 47)).slots == 8
    assert asyncio.run(scenario("priority", 12)).slots == 4  # the floor
    for policy, quota, needs in (("priority", 11, "12 more: 4"), ("static", 47, "48 more: 16")):
        with pytest.raises(QuotaError, match=f"this needs {needs} on each of 3 switches, "):
            asyncio.run(scenario(policy, quota))


async def test_others_shrink_for_a_job_that_waits_for_its_quota_of_slots_alone() -> None:
    bench = Bench("equal", slots=64)
    await bench.start()
    job = await bench.run("j")
    for quota in (TenantConfig(jobs=1), TenantConfig(workers=2)):
        bench.racks.registry.admission = Admission({"default": quota})
        with pytest.raises(QuotaError) as full:
            await bench.join("late")
        with pytest.raises(QueuedError, match="quota of tenant"):
            await bench.memory.wait(
                JobSpec("late", 2, mode="pool", queue_s=100.0), full.value, None, 0.0
            )
        await bench.settle()
        assert "late" in bench.memory.queue
        assert job.slots == 64
    bench.racks.registry.admission = Admission({"default": TenantConfig(slots=64)})
    assert ((await bench.run("late", queue_s=100.0)).slots, job.slots) == (32, 32)


async def test_at_one_switch_a_policy_gives_as_many_as_the_quota_leaves() -> None:
    bench = Bench("equal")
    await bench.start()
    bench.racks.registry.admission = Admission({"default": TenantConfig(slots=15)})
    assert bench.memory.sized(Job(JobSpec("j", 2, tenant="default"), 1, 0.0), ()) == 8
    bench.racks.registry.admission = Admission({"default": TenantConfig(slots=3)})
    assert (
        bench.memory.sized(Job(JobSpec("j", 2, tenant="default"), 1, 0.0), ()) == 4
    )  # which the quota refuses
