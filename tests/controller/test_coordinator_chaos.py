"""Random lives of jobs on a switch that refuses, loses connections and restarts, under controllers
that die at any point: in the end the switch has what the store says, and nothing is lost for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from ipaddress import IPv4Address
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller import faults, retry
from ina.controller.change import Word
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.memory import StaticPool
from ina.controller.store import IN_MEMORY, open_store
from ina.controller.switches.reconcile import Difference, compare
from ina.controller.switches.writer import SwitchWriter
from ina.errors import InaError
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.tables.errors import SwitchError
from ina.tables.session import SwitchSession
from ina.tables.values import Entry, Group
from ina.trees.endpoint import Endpoint
from tests.selection import examples
from tests.worlds.fakes.sessions import FakeSession, Killed
from tests.worlds.fakes.switches import alone, only, switch_of

NAMES = ("a", "b", "c")
STEPS = 30
DEEDS = (
    *("run_job", "run_job", "run_job", "leave", "leave", "lose", "miss", "miss", "evict"),
    *("resize", "remap", "breathe", "reconnect", "restart_switch"),
)
CHANGES = (
    *("run_job", "run_job", *["resize"] * 4, *["remap"] * 8, "miss", "leave", "breathe"),
    *("reconnect", "reconnect"),
)
"""Of lives that are long enough for jobs to change again and again."""


class World:
    """A store, a switch, and the controller of now."""

    def __init__(self, dice: random.Random, deeds: Sequence[str]) -> None:
        self.dice = dice
        self.deeds = deeds
        self.session = FakeSession(dice)
        self.store = open_store(IN_MEMORY)
        self.calls: set[asyncio.Task[Any]] = set()
        self.coordinator: Coordinator
        self.newest_epoch = 0
        self.points_to_live = 0
        """How many more fault points until the controller dies; 0: it does not."""
        self.killed = False
        self.promised: set[int] = set()
        """Epochs of jobs whose workers were told that they run."""

    async def start(self) -> None:
        """A controller begins, again and again until the switch lets it."""
        while True:
            registry = Registry(
                alone(StaticPool(64, 16)),  # room for four jobs
                EpochCounter(self.store.last_epoch() or 0),
                range(1, 9),
            )
            claim = self.store.claim("chaos")
            self.killed = self.session.lost = self.session.unused = False
            writer = SwitchWriter(cast(SwitchSession, self.session))
            self.coordinator = Coordinator(registry, [switch_of(registry, writer)], Record(claim))
            try:
                self.coordinator.restore(self.store.load(0.0))
                await self.coordinator.reconcile(only(self.coordinator), fresh=False)
            except (SwitchError, Killed):
                await self.stop()
                continue
            return

    async def stop(self) -> None:
        """The process is gone, with all that it was doing."""
        self.points_to_live = 0
        while tasks := {*self.calls, *self.coordinator._background._tasks}:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.calls -= tasks

    def call(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        async def answer() -> None:
            with contextlib.suppress(InaError, Killed):  # the client hears of it
                await work()

        self.calls.add(asyncio.create_task(answer()))

    async def step(self) -> None:
        name = self.dice.choice(NAMES)
        await getattr(self, self.dice.choice(self.deeds))(name)
        await self.breathe(name)
        if self.killed:
            await self.die()
        self.check_epochs()

    async def run_job(self, name: str) -> None:
        async def life() -> None:
            await self.coordinator.create(JobSpec(name, 2), 0.0)
            where = [
                Endpoint(
                    Peer(IPv4Address("10.0.0.1"), 4000 + rank),
                    1,
                    results_group=IPv4Address(f"239.192.0.{1 + NAMES.index(name)}"),
                )
                for rank in range(2)
            ]
            joins = [self.coordinator.join(name, rank, where[rank], 60.0) for rank in range(2)]
            self.promised.add((await asyncio.gather(*joins))[0].epoch)

        self.call(life)

    async def leave(self, name: str) -> None:
        for job in self.coordinator.registry:
            if job.name == name and job.state in (JobState.RUNNING, JobState.LEAVING):
                for rank in list(job.members)[:1]:
                    self.call(partial(self.coordinator.leave, name, rank, job.epoch))

    async def lose(self, name: str) -> None:
        async def lose() -> None:
            self.coordinator.lose(self.coordinator.registry.get(name), [0], "chaos")

        self.call(lose)

    async def miss(self, name: str) -> None:
        """Results by IP multicast do not reach a worker."""
        for job in self.coordinator.registry:
            if job.name == name and job.members:
                rank = self.dice.choice(list(job.members))

                async def miss(job: Job = job, rank: int = rank) -> None:
                    self.coordinator.give_own_results(job, rank)

                self.call(miss)

    async def resize(self, name: str) -> None:
        slots = self.dice.choice((2, 4, 16, 30, 40))  # beside the last there is seldom room
        self.call(lambda: self.coordinator.changes.resize(name, slots, "chaos"))

    async def remap(self, name: str) -> None:
        """Ranks ask about a change, and say how far they are."""
        jobs = [job for job in self.coordinator.registry if job.name == name and job.members]

        async def talk(job: Job, words: list[Word]) -> None:
            for word in words:
                for rank in list(job.members):
                    if not (rank and word.first_operation):
                        self.coordinator.changes.hear(job, rank, word)

        for job in jobs:
            to = max(self.coordinator.changes.epoch_to(job, rank) for rank in job.members)
            words = [Word(), Word(to, 7), Word(to, done=True), Word()]
            if self.dice.random() < 0.1:
                words.insert(1, Word(to, declined=True))
            self.call(partial(talk, job, words[: self.dice.randrange(1, 6)]))

    async def evict(self, name: str) -> None:
        self.call(lambda: self.coordinator.evict(name, "chaos"))

    async def breathe(self, _: str) -> None:
        for _turn in range(self.dice.randrange(12)):
            await asyncio.sleep(0)

    async def reconnect(self, _: str) -> None:
        self.session.lost = False
        try:
            await self.coordinator.reconcile(only(self.coordinator), fresh=False)
        except SwitchError:
            self.session.lost = True
        except Killed:
            await self.die()

    async def restart_switch(self, name: str) -> None:
        self.session.restart()
        await self.breathe(name)
        await self.reconnect(name)

    async def die(self) -> None:
        await self.stop()
        going_on = {
            job.epoch: {rank: str(at) for rank, at in job.members.items()}
            for job in self.coordinator.registry
            if job.state is JobState.RUNNING and job.epoch in self.promised & self.session.epochs
        }
        await self.start()
        after = {
            job.epoch: {rank: str(at) for rank, at in job.members.items()}
            for job in self.coordinator.registry
        }
        assert {epoch: after.get(epoch) for epoch in going_on} == going_on

    def check_epochs(self) -> None:
        stored = self.store.last_epoch() or 0
        assert stored >= self.newest_epoch
        self.newest_epoch = stored
        mark = self.session.there.get((names.JOBS, (("epoch", 0), ("job", 0))))
        if mark is not None:
            assert isinstance(mark, Entry)
            assert dict(mark.params)["epoch"] <= stored

    def reach(self, point: str) -> None:
        if self.killed:
            raise Killed(point)
        if self.points_to_live:
            self.points_to_live -= 1
            if self.points_to_live == 0:
                self.killed = self.session.unused = True
                raise Killed(point)

    async def settle(self) -> None:
        """Leaves that the switch does not take, a death, no more trouble: all must agree."""
        self.session.trouble = 1.0
        for name in NAMES:
            await self.leave(name)
            await self.breathe(name)
        self.session.trouble = 0.0
        self.points_to_live = 0
        await self.die()

        def removals() -> list[Job]:
            return [
                job
                for job in self.coordinator.registry
                if job.state is JobState.LEAVING and not job.members
            ]

        while removals():
            await asyncio.sleep(0)
        registry = self.coordinator.registry
        assert {job.state for job in registry} <= {
            JobState.JOINING,
            JobState.RUNNING,
            JobState.LEAVING,
        }
        assert await self.disagreement() == Difference()
        admitted = {
            (match["job"], match["worker"])
            for item in self.session.there.values()
            if isinstance(item, Entry) and item.table == names.MEMBERS
            for match in [dict(item.match)]
        }
        assert admitted == {
            (job.number, rank)
            for job in registry
            if job.state is not JobState.JOINING
            for rank in job.members
        }
        stored = {item.job.number: item.job for item in self.store.load(0.0)}
        assert {n: (j.name, j.state, j.epoch) for n, j in stored.items()} == {
            job.number: (job.name, job.state, job.epoch) for job in registry
        }
        await self.give_all_their_own()
        for job in list(registry):
            await self.coordinator.evict(job.name, "the end")
        assert len(registry) == 0
        assert registry.slots_used() == 0
        assert self.store.load(0.0) == []
        assert len(self.session.there) == 2  # the mark, and its own address
        await self.stop()

    async def give_all_their_own(self) -> None:
        """In the end no copy is shared, and no entry for shared ones is left."""
        for job in self.coordinator.registry:
            for rank in list(job.members):
                self.coordinator.give_own_results(job, rank)
        while self.coordinator._background._tasks:
            await asyncio.sleep(0)
        assert await self.disagreement() == Difference()
        for item in self.session.there.values():
            if isinstance(item, Group):
                assert all(instance <= 32 for _, instance in item.replicas)
            elif item.table == names.RECEIVERS:
                assert item.exact("worker") < 32

    async def disagreement(self) -> Difference:
        state = await only(self.coordinator).writer.read_state()
        return compare(only(self.coordinator).wanted_of(self.coordinator.registry), state)


async def live(
    seed: int, trouble: float, deaths: bool, patch: Callable[[World], None], deeds: Sequence[str]
) -> None:
    world = World(random.Random(seed), deeds)
    patch(world)
    await world.start()
    for _ in range(STEPS):
        world.session.trouble = trouble * world.dice.random()
        if deaths and not world.points_to_live:
            world.points_to_live = world.dice.randrange(1, 40)
        await world.step()
    await world.settle()
    world.store.close()


@given(
    deeds=st.sampled_from([DEEDS, CHANGES]),
    seed=st.integers(0, 2**32),
    trouble=st.sampled_from([0.0, 0.1, 0.5]),
    deaths=st.booleans(),
)
@settings(deadline=None, max_examples=examples(100))
def test_store_and_switch_agree_after_any_life(
    deeds: Sequence[str], seed: int, trouble: float, deaths: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "FIRST_PAUSE_S", 0.0)
        patch.setattr(retry, "MAX_PAUSE_S", 0.0)

        def hook(world: World) -> None:
            patch.setattr(faults, "reach", world.reach)

        asyncio.run(asyncio.wait_for(live(seed, trouble, deaths, hook, deeds), 60))


async def test_this_switch_is_not_one_that_agrees_with_everything() -> None:
    session = FakeSession(random.Random(0))
    group = Group(7, ((1, 1),))
    await session.insert([group])
    with pytest.raises(SwitchError, match="there is an entry"):
        await session.insert([group])
    session.trouble = 1.0
    with pytest.raises(SwitchError, match="no answer"):
        await session.delete([group])
