"""The coordinator with a switch that records, refuses or stalls: order, failure, cancellation."""

from __future__ import annotations

import asyncio
import gc
import weakref
from ipaddress import IPv4Address

import pytest

from ina.controller.errors import JobAbortedError, JoinTimeoutError, StandbyError, UnknownJobError
from ina.controller.job import JobSpec, JobState
from ina.controller.jobs.admission import Admission
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.memory import StaticPool
from ina.controller.store import IN_MEMORY, open_store
from ina.protocol.peer import Peer
from ina.tables.errors import SwitchError
from ina.trees.endpoint import Endpoint
from tests.worlds.fakes.coordinator import Bench
from tests.worlds.fakes.sessions import RecordingSwitch
from tests.worlds.fakes.switches import alone, only, switch_of


async def test_entries_go_in_once_and_come_out_by_worker_then_all() -> None:
    bench = Bench()
    jobs = await asyncio.gather(*await bench.start(3))
    assert len(set(map(id, jobs))) == 1
    for rank in (2, 0, 1):
        await bench.coordinator.leave("j", rank, 1)
    assert bench.switch.log == [
        "install 1 epoch 1",
        "remove worker 2",
        "remove worker 0",
        "remove",
    ]
    bench.assert_empty()


async def test_all_leaving_at_once_removes_once() -> None:
    bench = Bench()
    await asyncio.gather(*await bench.start(4))
    await asyncio.gather(*(bench.coordinator.leave("j", rank, 1) for rank in range(4)))
    assert bench.switch.log.count("remove") == 1
    bench.assert_empty()


async def test_what_is_about_to_be_written_is_not_missing_on_the_switch() -> None:
    bench = Bench()
    bench.switch.mark = 1
    switch = only(bench.coordinator)
    async with switch.turn:
        look = asyncio.create_task(bench.coordinator.reconcile(switch, fresh=False))
        await asyncio.sleep(0)  # it has its turn before the job, which starts meanwhile
        joins = await bench.start(2)
    await asyncio.gather(look, *joins)
    assert bench.switch.items == []
    assert bench.switch.log == ["install 1 epoch 1"]


async def test_a_refused_entry_reaches_every_worker_and_frees_the_job() -> None:
    bench = Bench()
    bench.switch.refuse = SwitchError("switch s: table members is full")
    joins = await bench.start(2)
    for result in await asyncio.gather(*joins, return_exceptions=True):
        assert isinstance(result, SwitchError)
        assert str(result) == "switch s: table members is full"
    while len(bench.registry):
        await asyncio.sleep(0)
    assert bench.switch.log == ["install 1 epoch 1", "remove"]
    bench.assert_empty()


async def test_a_worker_that_goes_away_during_the_start_ends_it_for_all() -> None:
    bench = Bench()
    bench.switch.gate.clear()
    first, second = await bench.start(2)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    bench.switch.gate.set()
    with pytest.raises(JobAbortedError, match="rank 1 went away while the job was starting"):
        await first
    while len(bench.registry):
        await asyncio.sleep(0)
    assert bench.switch.log == ["install 1 epoch 1", "remove"]
    bench.assert_empty()


async def test_a_switch_that_is_too_slow_is_named_and_what_it_took_is_removed() -> None:
    bench = Bench()
    bench.switch.gate.clear()
    joins = await bench.start(2, timeout_s=0.05)
    for result in await asyncio.gather(*joins, return_exceptions=True):
        assert isinstance(result, JoinTimeoutError)
        assert "the switch did not take its entries in the 0.05 s" in str(result)
    bench.switch.gate.set()
    while len(bench.registry):
        await asyncio.sleep(0)
    assert bench.switch.log == ["install 1 epoch 1", "remove"]
    bench.assert_empty()


async def test_closing_ends_waiting_joins_and_keeps_running_jobs() -> None:
    bench = Bench()
    await asyncio.gather(*await bench.start(1))
    await bench.coordinator.create(JobSpec("k", 2), 0.0)
    waiting = asyncio.create_task(
        bench.coordinator.join("k", 0, Endpoint(Peer(IPv4Address("10.0.0.1"), 5000), 1), 20.0)
    )
    await asyncio.sleep(0)
    await bench.coordinator.close()
    with pytest.raises(StandbyError, match="the controller is stopping"):
        await waiting
    assert bench.switch.log == ["install 1 epoch 1"]


async def test_a_worker_that_hangs_up_as_the_job_begins_to_run_has_left() -> None:
    bench = Bench()
    bench.switch.gate.clear()
    joins = await bench.start(2)
    bench.switch.gate.set()
    job = bench.registry.get("j")
    while job.state is JobState.STARTING:
        await asyncio.sleep(0)
    assert not joins[0].done()
    joins[0].cancel()
    await joins[1]
    await bench.coordinator.close()
    assert bench.switch.log[-1] == "remove worker 0"
    await bench.coordinator.leave("j", 1, job.epoch)
    bench.assert_empty()


async def test_a_job_that_nobody_joined_is_forgotten() -> None:
    now_s = 0.0
    registry = Registry(
        alone(StaticPool(64, 16)),
        EpochCounter(0),
        range(1, 9),
        admission=Admission({}, unjoined_s=1.0),
    )
    claim = open_store(IN_MEMORY).claim("test")
    switch = switch_of(registry, RecordingSwitch())
    coordinator = Coordinator(registry, [switch], Record(claim), clock=lambda: now_s)
    job = weakref.ref(await coordinator.create(JobSpec("j", 2), 0.0))
    now_s = 2.0
    assert coordinator.jobs() == []
    gc.collect()
    assert job() is None


async def test_what_happens_to_a_job_is_told_in_order() -> None:
    bench = Bench()
    await asyncio.gather(*await bench.start(2))
    for rank in (1, 0):
        await bench.coordinator.leave("j", rank, 1)
    assert bench.told() == [
        ("JOB_CREATED", [], False),
        ("MEMBER_JOINED", [0], False),
        ("MEMBER_JOINED", [1], False),
        ("JOB_RUNNING", [], False),
        ("MEMBER_LEFT", [1], False),
        ("MEMBER_LEFT", [0], False),
        ("JOB_ENDED", [], False),
    ]


async def test_a_lost_worker_ends_its_job_once() -> None:
    bench = Bench()
    job, *_ = await asyncio.gather(*await bench.start(3))
    bench.coordinator.lose(job, [2], "rank 2 has died")
    bench.coordinator.lose(job, [1], "rank 1 has died")
    await bench.until_empty()
    bench.coordinator.lose(job, [0], "rank 0 has died")
    assert bench.switch.log == ["install 1 epoch 1", "remove"]
    assert bench.told()[-2:] == [("MEMBER_LOST", [2], True), ("JOB_ENDED", [], False)]
    await bench.coordinator.leave("j", 0, 1)  # its worker cannot know yet
    assert (await bench.coordinator.create(JobSpec("j", 3), 0.0)).state is JobState.JOINING


async def test_an_evicted_job_is_gone_when_evict_returns() -> None:
    bench = Bench()
    await asyncio.gather(*await bench.start(2))
    await bench.coordinator.evict("j", "room is needed")
    bench.assert_empty()
    assert bench.told()[-2:] == [("JOB_EVICTED", [], True), ("JOB_ENDED", [], False)]
    with pytest.raises(UnknownJobError):
        await bench.coordinator.evict("j", "again")


async def test_evicting_a_job_that_joins_tells_those_who_wait() -> None:
    bench = Bench()
    await bench.coordinator.create(JobSpec("j", 2), 0.0)
    waiting = bench.join(0)
    await asyncio.sleep(0)
    await bench.coordinator.evict("j", "room is needed")
    with pytest.raises(JobAbortedError, match="job 'j': room is needed"):
        await waiting
    assert bench.switch.log == []
    bench.assert_empty()


async def test_evicting_a_job_that_starts_waits_until_its_entries_are_gone() -> None:
    bench = Bench()
    bench.switch.gate.clear()
    joins = await bench.start(2)
    evicting = asyncio.create_task(bench.coordinator.evict("j", "room is needed"))
    await asyncio.sleep(0.01)
    assert not evicting.done()
    bench.switch.gate.set()
    await evicting
    bench.assert_empty()
    for result in await asyncio.gather(*joins, return_exceptions=True):
        assert isinstance(result, JobAbortedError)
    assert bench.switch.log == ["install 1 epoch 1", "remove"]


@pytest.mark.parametrize("world_size", [1, 2])
async def test_a_refused_removal_is_tried_until_the_switch_lets_go(world_size: int) -> None:
    bench = Bench()
    await asyncio.gather(*await bench.start(world_size))
    bench.switch.keep = 1
    with pytest.raises(SwitchError, match="no answer"):
        await bench.coordinator.leave("j", 0, 1)
    if world_size == 2:
        await bench.coordinator.leave("j", 1, 1)
    await bench.until_empty()
    assert bench.switch.log.count("remove") == 1


async def test_closing_does_not_wait_for_a_switch_that_keeps_refusing() -> None:
    bench = Bench()
    job, *_ = await asyncio.gather(*await bench.start(1))
    bench.switch.keep = 1_000_000
    bench.coordinator.lose(job, [0], "rank 0 has died")
    await asyncio.sleep(0)
    await bench.coordinator.close()
    assert job.state is JobState.LEAVING
