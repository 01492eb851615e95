"""A controller's session with a switch of the virtual network, as P4Runtime's is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ina.controller.config import SwitchConfig
from ina.controller.switches.plan import epoch_mark
from ina.fabric.shapes import star
from ina.p4 import names
from ina.sim.agent import SwitchAgent
from ina.sim.fabric import VirtualFabric
from ina.sim.loop import VirtualLoop
from ina.sim.messages import ControlLog, Path
from ina.sim.process import Process
from ina.sim.southbound import connect
from ina.sim.topology import laid
from ina.tables.errors import SwitchError
from ina.tables.p4runtime import P4RuntimeSession
from ina.tables.values import Count, Counter, Entry, Group

GROUP = Group(20_000, ((1, 1), (2, 2)))
NO_SUCH_PORT = Group(20_001, ((600, 1),))


class Bench:
    """A switch, and sessions of controllers that share a path."""

    def __init__(self, fabric: VirtualFabric, loop: VirtualLoop) -> None:
        self.fabric = fabric
        self.agent = SwitchAgent(fabric.switches["s1"])
        self.path = Path("c-s1", 1, ControlLog(loop))

    async def connect(
        self, election_id: int = 1, *, standby: bool = False, process: Process | None = None
    ) -> P4RuntimeSession:
        switch = SwitchConfig(grpc_addr="s1:9559", election_id=election_id)
        process = process or Process("c")
        work = connect(process, self.agent, self.path, switch, standby=standby)
        return await process.spawn(work)


Scenario = Callable[[Bench], Coroutine[Any, Any, None]]


def run(scenario: Scenario) -> None:
    with VirtualFabric(laid(star(2)), seed=1) as fabric, VirtualLoop(fabric.network) as loop:
        loop.run_until_complete(scenario(Bench(fabric, loop)))


def test_entries_and_groups_are_as_written() -> None:
    async def scenario(bench: Bench) -> None:
        session = await bench.connect()
        assert await session.set_pipeline()
        assert not await session.set_pipeline()  # it runs already
        await session.insert([epoch_mark(1), GROUP])
        await session.modify([epoch_mark(2), Group(GROUP.number, ((1, 1),))])
        (mark,) = await session.read_entries(names.JOBS)
        assert mark == epoch_mark(2)
        assert await session.read_groups() == [Group(GROUP.number, ((1, 1),))]
        await session.delete([epoch_mark(2), GROUP, GROUP])
        assert await session.read_entries() == []
        assert await session.read_groups() == []

    run(scenario)


def test_what_is_refused_does_not_stop_the_rest() -> None:
    async def scenario(bench: Bench) -> None:
        session = await bench.connect()
        with pytest.raises(SwitchError, match="no pipeline"):
            await session.insert([GROUP])
        await session.set_pipeline()
        await session.insert([GROUP])
        for write in (
            session.insert([GROUP, epoch_mark(1)]),
            session.insert([NO_SUCH_PORT]),
            session.modify([NO_SUCH_PORT]),
            session.modify([Entry(names.JOBS, (("job", 9), ("epoch", 9)), names.ADMIT_JOB, ())]),
        ):
            with pytest.raises(SwitchError) as caught:
                await write
            assert caught.value.refused
        assert len(await session.read_entries()) == 1

    run(scenario)


def test_counters_are_read_and_cleared() -> None:
    async def scenario(bench: Bench) -> None:
        session = await bench.connect()
        await session.set_pipeline()
        cell = Counter(names.JOB_COUNTERS[0], 3)
        pipeline = bench.fabric.switches["s1"].pipeline
        assert pipeline is not None
        pipeline.set_counter(cell.name, cell.index, 5, 600)
        assert await session.read_counts([cell]) == [Count(5, 600)]
        await session.clear_counts([cell])
        assert await session.read_counts([cell]) == [Count(0, 0)]

    run(scenario)


def test_the_highest_election_id_writes_and_a_backup_follows_it() -> None:
    async def scenario(bench: Bench) -> None:
        low = await bench.connect(1)
        await low.set_pipeline()
        assert low.is_primary
        high = await bench.connect(2)
        assert high.is_primary
        await low.until_backup()
        assert low.who_is_primary() == "another controller is primary (election id 2)"
        with pytest.raises(SwitchError, match="not the primary's"):
            await low.insert([GROUP])
        with pytest.raises(SwitchError, match="already used"):
            await bench.connect(1)
        await low.close()
        await asyncio.sleep(0.01)
        with pytest.raises(SwitchError, match="another controller is primary"):
            await bench.connect(1)

    run(scenario)


def test_a_backup_becomes_primary_when_the_primary_dies() -> None:
    async def scenario(bench: Bench) -> None:
        first = Process("c1")
        await bench.connect(2, process=first)
        backup = await bench.connect(1, standby=True)
        assert not backup.is_primary
        first.kill()
        await backup.until_primary()
        assert backup.election_id == 2 + 1
        again = await bench.connect(2, standby=True)
        assert not again.is_primary

    run(scenario)


def test_a_session_ends_with_the_switch_s_power_and_without_a_sign_of_life() -> None:
    async def scenario(bench: Bench) -> None:
        session = await bench.connect()
        await session.set_pipeline()
        await session.insert([GROUP])
        bench.agent.power_off()
        with pytest.raises(SwitchError, match="closed the stream"):
            await session.until_backup()
        bench.agent.power_on()
        session = await bench.connect()
        assert await session.set_pipeline()
        assert await session.read_groups() == []
        bench.agent.power_off(silently=True)
        with pytest.raises(SwitchError, match="no answer within 10 s"):
            await session.read_groups()
        await asyncio.sleep(10.0)
        assert session.lost is not None
        with pytest.raises(SwitchError, match="no answer within 10 s"):
            await bench.connect()

    run(scenario)


@pytest.mark.parametrize(("off_s", "took_s"), [(0.3, 1.0), (1.5, 3.0), (6.9, 7.0)])
def test_who_connects_while_the_power_is_off_knocks_again(off_s: float, took_s: float) -> None:
    async def scenario(bench: Bench) -> None:
        bench.agent.power_off()
        began_s = asyncio.get_running_loop().time()
        asyncio.get_running_loop().call_later(off_s, bench.agent.power_on)
        session = await bench.connect()
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(took_s, abs=0.05)
        assert session.is_primary
        assert await session.set_pipeline()

    run(scenario)


def test_what_waits_for_an_answer_ends_with_the_switch_s_power() -> None:
    """As a connection ends that the other side has closed: long before the answer is too late."""

    async def scenario(bench: Bench) -> None:
        session = await bench.connect()
        await session.set_pipeline()
        insert = asyncio.ensure_future(session.insert([GROUP]))
        await asyncio.sleep(0)
        bench.agent.power_off()
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(SwitchError, match="it closed the stream"):
            await insert
        assert asyncio.get_running_loop().time() - began_s < 0.1

    run(scenario)


def test_a_controller_that_starts_again_waits_until_its_former_self_is_gone() -> None:
    async def scenario(bench: Bench) -> None:
        first = Process("c#1")
        await bench.connect(process=first)
        bench.path.cut()
        first.kill()
        again = asyncio.ensure_future(bench.connect(process=Process("c#2")))
        await asyncio.sleep(0.01)
        bench.path.mend()  # what it has sent is lost, and that its former self has gone is heard
        with pytest.raises(SwitchError, match="no answer"):
            await again
        assert (await bench.connect(process=Process("c#3"))).is_primary

    run(scenario)
