"""A leaf whose slots a memory policy deals out, with a clock that is set."""

from __future__ import annotations

import asyncio
from typing import Any

from ina.controller.change import Word
from ina.controller.config import JobsConfig
from ina.controller.job import Job, JobSpec
from ina.controller.memory.allocators import Buddies
from ina.controller.memory.demand import StepModel
from ina.controller.slots.memory import Memory
from ina.controller.slots.rebalancer import Rebalancer
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.changing import ask, decide, finish
from tests.worlds.fakes.racks import SLOTS, Racks

RTT_S = 1e-3


PAYLOAD_BYTES = 64 * 4


class Bench:
    """One leaf of 64 slots, whose jobs have two ranks there, and a clock that is set."""

    def __init__(self, policy: str, **config: Any) -> None:
        self.racks = Racks()
        self.policy = policy
        self.config = config
        self.now_s = 0.0
        self.operation = 1

    async def start(self) -> None:
        await self.racks.start()
        self.racks.registry.admission.preempt = False
        for capacity in self.racks.registry.switches.values():
            capacity.memory = Buddies(SLOTS, 16)
        config = JobsConfig(**{"policy": self.policy, "slots": 16, "floor": 4, **self.config})
        self.memory = Memory(config, self.racks.registry, clock=lambda: self.now_s)
        self.racks.registry.room = self.memory
        self.rebalancer = Rebalancer(self.memory, self.racks.coordinator)

    async def join(self, name: str, queue_s: float = 0.0, **more: int) -> list[asyncio.Task[Job]]:
        """A job on leaf1; the calls of its workers."""
        coordinator = self.racks.coordinator
        slots, priority = more.get("asked", 0), more.get("priority", 0)
        asked = JobSpec(name, 2, slots, priority=priority, queue_s=queue_s)
        await coordinator.create(asked, 0.0)
        return await self.racks.join_all(name, (1, 1))

    async def run(self, name: str, queue_s: float = 0.0, **more: int) -> Job:
        """A job on leaf1, until it runs; others are resized meanwhile."""
        calls = await self.join(name, queue_s, **more)
        while not calls[0].done():
            await self.settle()
        return await calls[0]

    async def settle(self) -> None:
        """Rebalances until nothing changes any more."""
        for _ in range(10):
            for _ in range(5):  # who waits looks
                await asyncio.sleep(0)
            await self.rebalancer.rebalance()
            changing = [job for job in self.racks.registry if job.change is not None]
            if not changing:
                return
            for job in changing:
                await self._change(job)
        raise AssertionError("it never settles")

    async def _change(self, job: Job) -> None:
        """What its ranks do of a change that has begun, until it is over."""
        self.operation += 1
        told = decide(self.racks, job, self.operation)
        finish(self.racks, job, told.mapping.epoch)
        while job.change is not None:
            for rank in job.members if told.terms.waits else ():
                opened = ask(self.racks, job, rank, Word(told.mapping.epoch))
                if opened is not None and not opened.terms.waits:
                    ask(self.racks, job, rank)
            await asyncio.sleep(0)
        self.memory.sizing.resized(job)
        self.memory.queue.wake()

    def learn(self, job: Job, lanes: float, steps: int = 1000) -> None:
        """Its communication hides with so many packets in flight; it steps once a second."""
        began_s = self.now_s
        model = StepModel(1.0, 1.0, lanes * PAYLOAD_BYTES / RTT_S, PAYLOAD_BYTES / RTT_S)
        for at_s in (0.0, 100.0):
            step_s, rate = model.step_s(job.slots), job.slots // 2 * model.lane_bytes_per_s
            done = at_s / step_s
            progress = pb2.Progress(
                operations_done=int(done),
                chunks_done=int(done * model.bytes / PAYLOAD_BYTES),
                busy_s=done * model.bytes / rate,
                tail_s=done * (step_s - 1.0),
                round_trip_s=RTT_S,
                step_operations=1,
                steps=steps,
            )
            self.now_s = began_s + at_s
            self.memory.sizing.hear(job, 0, progress)
        self.now_s = began_s

    def told(self, what: str) -> list[tuple[str, int, int]]:
        found = self.memory.decisions.of("")
        return [(it.job, it.slots_before, it.slots) for it in found if it.what == what]
