"""Takes jobs off their switches, in the background and until it works, and frees what they had.

Whoever needs the slots or the name waits for it here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from ina.controller.errors import StandbyError
from ina.controller.job import Job, JobState
from ina.controller.jobs import spread
from ina.controller.jobs.events import EventBus, job_event
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.retry import Persistence, fail, wait_for
from ina.controller.switches.switch import Switch
from ina.rpc import controller_pb2 as pb2

LOOK_S = 0.1
"""How often who waits for a name looks whether the switches that keep it are away."""


class Removals:
    """Of all jobs of a coordinator."""

    def __init__(
        self,
        registry: Registry,
        switches: Mapping[str, Switch],
        record: Record,
        background: Persistence,
        gone: Callable[[Job], None],
    ) -> None:
        """``gone`` hears of each job of which nothing is left."""
        self._registry = registry
        self._switches = switches
        self._record = record
        self._background = background
        self._gone = gone
        self._firsts: dict[Job, asyncio.Future[None]] = {}
        self._ended: dict[Job, asyncio.Event] = {}

    def begin(self, job: Job) -> asyncio.Future[None]:
        """Removes all of a job's entries; returns how the first attempt ends."""

        def removed(switch: Switch) -> None:
            if len(job.switches) > 1:  # the others may keep it waiting for long
                self._registry.release(job, switch.name)
                self._record.save("released", job)
                switch.forget(job)

        async def attempt() -> None:
            await spread.remove(job, [self._switches[name] for name in job.switches], removed)
            self._registry.removed(job)
            self._gone(job)

        return self._background.insist(f"removing job {job.name!r}", attempt, self.first(job))

    def first(self, job: Job) -> asyncio.Future[None]:
        """How the first attempt to remove the job's entries ends."""
        if job not in self._firsts:
            self._firsts[job] = asyncio.get_running_loop().create_future()
        return self._firsts[job]

    def member(self, job: Job, rank: int) -> asyncio.Future[None]:
        """Removes what lets one worker in; returns how the first attempt ends."""
        firsts = (mapping.forest.first_nodes(rank) for mapping in job.mappings)
        nodes = {node.switch for of_mapping in firsts for node in of_mapping}
        # Where it sends to a node on its host, there is none.
        switches = [self._switches[name] for name in sorted(nodes) if name in self._switches]

        async def attempt() -> None:
            for switch in switches:
                async with switch.turn:
                    await switch.remove_member(job, rank)

        return self._background.insist(f"removing rank {rank} of job {job.name!r}", attempt)

    async def wait(self, job: Job, timeout_s: float) -> None:
        """Until nothing is left of the job, or the time is over."""
        await wait_for(self._ended.setdefault(job, asyncio.Event()), timeout_s)

    def free_name(self, job: Job, events: EventBus) -> bool:
        """Whether another job may have its name, as it has another one now: nothing is left of it
        but on switches that are away, and others can be used. There it keeps what it has.
        """
        capacities = self._registry.switches
        is_over = job.state is JobState.LEAVING and not job.members and bool(job.switches)
        is_away = not any(capacities[name].is_reached() for name in job.switches)
        are_others = any(it.is_reached() for it in capacities.values() if it.is_switch)
        aside, former = f"{job.name} (former {job.number})", job.name
        is_new = all(other.name != aside for other in self._registry)
        if not (is_over and is_away and are_others and is_new):
            return False
        self._registry.rename(job, aside)
        self._record.save("set_aside", job)
        where = ", ".join(map(repr, job.switches))
        told = job_event(pb2.JOB_ENDED, job, reason=f"its slots wait for {where}: {aside!r}")
        told.name = former
        events.publish(told)
        return True

    def forget(self, job: Job) -> None:
        """Nothing is left of it: who waits goes on."""
        self._firsts.pop(job, None)
        ended = self._ended.pop(job, None)
        if ended is not None:
            ended.set()

    def close(self, why: str) -> None:
        """Fails who waits for a removal that has not even begun."""
        for first in self._firsts.values():
            fail(first, StandbyError(why))
