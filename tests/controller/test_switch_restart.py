"""A controller whose switch goes away and comes back, with or without its registers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from finsy import p4client

from ina.controller.app import ControllerApp
from ina.controller.config import make_config
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.service.supervisor import Supervisor
from ina.controller.switches.writer import SwitchWriter
from ina.p4 import compiled
from ina.rpc import controller_pb2 as pb2
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.tables import p4runtime
from ina.tables.errors import SwitchError
from ina.tables.p4runtime import P4RuntimeSession
from ina.tables.values import Group
from ina.trees.slots import SlotRange
from tests.controller.proxy import Proxy
from tests.worlds.fakes.sessions import RefusingWriter
from tests.worlds.fakes.switches import (
    job_at,
    memory_of,
    of_jobs,
    only,
    plan_here,
    plan_of,
    writer_of,
)
from tests.worlds.processes.controllers import HANG_S, endpoint, until

pytestmark = pytest.mark.usefixtures("quick_retries")


class Bench:
    """A controller, and a switch that can be replaced at its address."""

    def __init__(self) -> None:
        self.switch = SoftSwitch([UdpPort(1)])
        self.switch.start()
        self.proxy: Proxy
        self.app: ControllerApp

    @property
    def supervisor(self) -> Supervisor:
        assert self.app._supervisor is not None
        return self.app._supervisor

    @property
    def coordinator(self) -> Coordinator:
        assert self.supervisor.term is not None
        return self.supervisor.term.coordinator

    async def run_job(self, name: str, world_size: int = 2) -> Job:
        await self.coordinator.create(JobSpec(name, world_size), 0.0)
        joins = [
            self.coordinator.join(name, rank, endpoint(rank), HANG_S) for rank in range(world_size)
        ]
        return (await asyncio.gather(*joins))[0]

    async def stop_switch(self) -> None:
        await asyncio.to_thread(self.switch.stop)
        await until(lambda: self.supervisor.unreachable is not None)

    async def start_switch(self) -> None:
        self.switch = SoftSwitch([UdpPort(1)], grpc_addr=self.switch.grpc_addr)
        await asyncio.to_thread(self.switch.start)

    async def until_back(self) -> None:
        await until(lambda: self.supervisor.unreachable is None)

    async def entries(self) -> list[str]:
        return [f"{entry.table} {entry.match}" for entry in of_jobs(await self.app.show())]

    def told(self, name: str) -> list[str]:
        return [pb2.EventKind.Name(event.kind) for event in self.coordinator.events.history(name)]


@asynccontextmanager
async def running() -> AsyncIterator[Bench]:
    bench = Bench()
    try:
        async with Proxy(bench.switch.grpc_addr) as bench.proxy:
            settings = {"grpc_addr": bench.proxy.address, "values": 64}
            config = make_config({"listen": "127.0.0.1:0", "switch": settings}, "test")
            async with ControllerApp(config) as bench.app:
                yield bench
    finally:
        bench.switch.stop()


async def test_a_switch_that_restarts_ends_its_jobs_and_takes_new_ones() -> None:
    async with running() as bench:
        job = await bench.run_job("j")
        with bench.coordinator.events.subscribe() as listener:
            await bench.stop_switch()
            assert job.state is JobState.RUNNING  # workers may yet hear of it
            with pytest.raises(SwitchError):
                await bench.app.show()
            await bench.start_switch()
            events = {}
            async for event in listener:
                events[pb2.EventKind.Name(event.kind)] = event
                if event.kind == pb2.JOB_ENDED:
                    break
            assert list(events)[:2] == ["SWITCH_UNREACHABLE", "SWITCH_LOST"]
            assert events["SWITCH_LOST"].fatal
            assert events["SWITCH_LOST"].reason == "the switch has lost its registers"
        await bench.until_back()
        assert await bench.entries() == []
        again = await bench.run_job("j")
        assert again.epoch == job.epoch + 1  # epochs never go back
        assert len(await bench.entries()) == 6


async def test_a_lost_connection_alone_changes_nothing() -> None:
    async with running() as bench:
        job = await bench.run_job("j")
        before = await bench.entries()
        bench.proxy.up = False
        bench.proxy.cut()
        await until(lambda: bench.supervisor.unreachable is not None)
        bench.proxy.up = True
        await bench.until_back()
        assert await bench.entries() == before
        assert job.state is JobState.RUNNING
        assert bench.told("j")[-1] == "JOB_RUNNING"
        await bench.coordinator.leave("j", 0, job.epoch)
        await bench.coordinator.leave("j", 1, job.epoch)
        assert await bench.entries() == []


async def test_a_switch_that_falls_silent_is_noticed_and_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(p4runtime, "PROBE_S", 0.1)
    monkeypatch.setattr(p4client, "_DEFAULT_RPC_TIMEOUT", 1.0)

    async with running() as bench:
        job = await bench.run_job("j")
        before = await bench.entries()
        bench.proxy.silent = True
        await until(lambda: bench.supervisor.unreachable is not None)
        bench.proxy.silent = False
        await bench.until_back()
        assert await bench.entries() == before
        assert job.state is JobState.RUNNING


async def test_a_switch_that_refuses_is_tried_often() -> None:
    """gRPC by itself waits for a second first, then for longer and longer."""

    with SoftSwitch([UdpPort(1)]) as switch:
        async with Proxy(switch.grpc_addr) as proxy:
            proxy.up = False
            with pytest.raises(SwitchError, match="no answer within"):
                await P4RuntimeSession.connect(proxy.address, 1, timeout_s=1.5)
            assert proxy.refused >= 4


async def test_epochs_are_newer_than_those_of_foreign_jobs() -> None:
    async with running() as bench:
        stranger = job_at("stranger", 9, 1, SlotRange(1024, 512, 512), 0.0, epoch=77)
        stranger.members[0] = endpoint(0)
        for stage in plan_here(stranger).stages:
            await writer_of(bench.coordinator).insert(stage)
        await bench.coordinator.reconcile(only(bench.coordinator), fresh=False)
        await bench.coordinator.remove_foreign(only(bench.coordinator))
        assert (await bench.run_job("j")).epoch == 78


async def test_what_somebody_removed_comes_back_and_what_left_meanwhile_goes() -> None:
    async with running() as bench:
        await bench.run_job("stays")
        gone = await bench.run_job("goes")
        before = await bench.entries()
        writer = writer_of(bench.coordinator)
        assert writer is not None
        refused = RefusingWriter(writer)
        only(bench.coordinator).writer = refused
        with pytest.raises(SwitchError, match="not now"):
            await bench.coordinator.leave("goes", 0, gone.epoch)
        await writer.remove(plan_of(bench.coordinator, "stays"))
        assert await bench.entries() != before
        refused.refuse = False
        await bench.coordinator.reconcile(only(bench.coordinator), fresh=False)
        left = [entry for entry in before if "worker=0" in entry and f"job={gone.number}" in entry]
        expected = {entry for entry in before if entry not in left or "receivers" in entry}
        assert set(await bench.entries()) == expected


async def test_a_job_whose_entries_the_switch_refuses_ends_alone() -> None:
    async with running() as bench:
        refused, fine = await bench.run_job("refused"), await bench.run_job("fine")
        writer = writer_of(bench.coordinator)
        assert writer is not None
        plan = plan_of(bench.coordinator, "refused")
        await writer.delete([plan.groups[0]])
        group = Group(plan.groups[0].number, ((9999, 1),))  # no such port
        only(bench.coordinator).replan(
            refused, plan, replace(plan, stages=((group,), *plan.stages[1:]))
        )
        await bench.coordinator.reconcile(only(bench.coordinator), fresh=False)
        await until(lambda: refused.state is JobState.GONE)
        assert bench.told("refused")[-2:] == ["SWITCH_LOST", "JOB_ENDED"]
        assert fine.state is JobState.RUNNING


async def test_a_worker_that_leaves_while_the_switch_is_away_is_removed_later() -> None:
    async with running() as bench:
        job = await bench.run_job("j", world_size=1)
        await bench.stop_switch()
        with pytest.raises(SwitchError):
            await bench.coordinator.leave("j", 0, job.epoch)
        assert job.state is JobState.LEAVING
        await bench.start_switch()
        await until(lambda: job.state is JobState.GONE)
        await bench.until_back()
        assert (await bench.app.show()).slots_used == 0
        assert (await bench.run_job("j")).state is JobState.RUNNING


async def test_a_job_cannot_start_while_the_switch_is_away_and_says_why() -> None:
    async with running() as bench:
        await bench.stop_switch()
        with pytest.raises(SwitchError, match=r"switch 127.0.0.1:\d+ device 1: "):
            await bench.run_job("j")
        await bench.start_switch()
        await bench.until_back()
        await until(lambda: len(bench.coordinator.registry) == 0)
        await bench.run_job("j")


async def test_foreign_entries_are_kept_until_an_operator_says_so() -> None:
    async with running() as bench:
        stranger = await bench.run_job("stranger")
        its_memory = memory_of(stranger)
        plan = plan_of(bench.coordinator, "stranger")
        await bench.coordinator.evict("stranger", "test")
        writer = writer_of(bench.coordinator)
        assert writer is not None
        await writer.install(plan, stranger.numbers, stranger.epoch)
        await bench.coordinator.reconcile(only(bench.coordinator), fresh=False)
        assert len(only(bench.coordinator).foreign) == 6
        assert (await bench.app.show()).slots_used == 512
        other = await bench.run_job("other")
        assert other.number != stranger.number
        assert memory_of(other).first != its_memory.first
        await bench.coordinator.remove_foreign(only(bench.coordinator))
        assert only(bench.coordinator).foreign == []
        assert len(await bench.entries()) == 6
        assert (await bench.app.show()).slots_used == 512  # other's


async def test_a_switch_that_was_given_to_another_controller_meanwhile() -> None:
    """Its mark is of epochs that we never issued: registers may be anybody's."""

    async with running() as bench:
        job = await bench.run_job("j")
        bench.proxy.up = False
        await bench.stop_switch()
        await bench.start_switch()
        # A quick stranger sets the pipeline, starts jobs, and is gone.
        address = bench.switch.grpc_addr
        stranger = await P4RuntimeSession.connect(address, 1, compiled(64), election_id=99)
        await stranger.set_pipeline()
        writer = SwitchWriter(stranger)
        mark = (await writer.read_state()).mark
        await writer.put_mark(1000, mark)
        await stranger.close()
        bench.proxy.up = True
        await until(lambda: job.state is JobState.GONE)
        await bench.until_back()
        assert (await bench.run_job("j")).epoch == 1001
