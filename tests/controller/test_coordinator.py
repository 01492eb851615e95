"""The coordinator with a switch that records, refuses or stalls: order, failure, cancellation."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Coroutine
from ipaddress import IPv4Address
from typing import Any

import pytest

from ina.controller.coordinator import Coordinator
from ina.controller.epochs import EpochCounter
from ina.controller.errors import JobAbortedError, JoinTimeoutError, SwitchError
from ina.controller.jobs import Endpoint, JobState
from ina.controller.memory import StaticPool
from ina.controller.plan import Entry, JobPlan
from ina.controller.registry import Registry


class RecordingSwitch:
    """A JobWriter. ``gate`` holds back installing; ``refuse`` makes it fail."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.refuse: SwitchError | None = None
        self.busy = False

    async def install(self, plan: JobPlan, job_number: int, epoch: int) -> None:
        assert not self.busy
        self.busy = True
        try:
            await self.gate.wait()
            self.log.append(f"install {job_number} epoch {epoch}")
            if self.refuse is not None:
                raise self.refuse
        finally:
            self.busy = False

    async def remove(self, plan: JobPlan) -> None:
        assert not self.busy
        self.log.append("remove")

    async def remove_entry(self, entry: Entry) -> None:
        assert not self.busy
        self.log.append(f"remove worker {dict(entry.match)['worker']}")


class Bench:
    def __init__(self) -> None:
        self.switch = RecordingSwitch()
        self.registry = Registry(StaticPool(64, 16), EpochCounter(0), range(1, 9))
        self.coordinator = Coordinator(self.registry, self.switch)

    def join(self, rank: int, timeout_s: float = 20.0) -> asyncio.Task[Any]:
        endpoint = Endpoint(IPv4Address("10.0.0.1"), 4000 + rank, 1)
        return asyncio.create_task(self.coordinator.join("j", rank, endpoint, timeout_s))

    async def start(self, world_size: int, timeout_s: float = 20.0) -> list[asyncio.Task[Any]]:
        await self.coordinator.create("j", world_size, 0, 0.0)
        joins = [self.join(rank, timeout_s) for rank in range(world_size)]
        for _ in range(3):
            await asyncio.sleep(0)
        return joins

    def assert_empty(self) -> None:
        assert len(self.registry) == 0
        assert self.registry.memory.used() == 0


def drive(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


def test_entries_go_in_once_and_come_out_by_worker_then_all() -> None:
    async def scenario() -> None:
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

    drive(scenario())


def test_all_leaving_at_once_removes_once() -> None:
    async def scenario() -> None:
        bench = Bench()
        await asyncio.gather(*await bench.start(4))
        await asyncio.gather(*(bench.coordinator.leave("j", rank, 1) for rank in range(4)))
        assert bench.switch.log.count("remove") == 1
        bench.assert_empty()

    drive(scenario())


def test_a_refused_entry_reaches_every_worker_and_frees_the_job() -> None:
    async def scenario() -> None:
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

    drive(scenario())


def test_a_worker_that_goes_away_during_the_start_ends_it_for_all() -> None:
    async def scenario() -> None:
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

    drive(scenario())


def test_a_switch_that_is_too_slow_is_named_and_what_it_took_is_removed() -> None:
    async def scenario() -> None:
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

    drive(scenario())


def test_closing_ends_waiting_joins_and_keeps_running_jobs() -> None:
    async def scenario() -> None:
        bench = Bench()
        await asyncio.gather(*await bench.start(1))
        await bench.coordinator.create("k", 2, 0, 0.0)
        waiting = asyncio.create_task(
            bench.coordinator.join("k", 0, Endpoint(IPv4Address("10.0.0.1"), 5000, 1), 20.0)
        )
        await asyncio.sleep(0)
        await bench.coordinator.close()
        with pytest.raises(JobAbortedError, match="the controller is stopping"):
            await waiting
        assert bench.switch.log == ["install 1 epoch 1"]

    drive(scenario())


def test_a_worker_that_hangs_up_as_the_job_begins_to_run_has_left() -> None:
    async def scenario() -> None:
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

    drive(scenario())


def test_a_job_that_nobody_joined_is_forgotten() -> None:
    async def scenario() -> None:
        now_s = 0.0
        registry = Registry(StaticPool(64, 16), EpochCounter(0), range(1, 9), unjoined_s=1.0)
        coordinator = Coordinator(registry, RecordingSwitch(), clock=lambda: now_s)
        job = weakref.ref(await coordinator.create("j", 2, 0, 0.0))
        now_s = 2.0
        assert coordinator.jobs() == []
        gc.collect()
        assert job() is None

    drive(scenario())
