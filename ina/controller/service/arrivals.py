"""How a job comes to be: it waits for its former self, for slots, or pushes others out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ina import modes
from ina.controller.errors import (
    FormerJobError,
    JobConflictError,
    JobTokenError,
    NoRoomError,
    QueuedError,
    QuotaError,
    UnknownJobError,
)
from ina.controller.job import Job, JobState
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.memory import Memory
from ina.controller.jobs.needs import Said
from ina.controller.jobs.sizing import Request
from ina.controller.watch.failure_detector import CHECK_S, FailureDetector
from ina.protocol.verify import Verify
from ina.rpc import controller_pb2 as pb2
from ina.rpc.queued import QUEUED


class Arrivals:
    """Creates jobs, or finds them."""

    def __init__(
        self,
        coordinator: Coordinator,
        detector: FailureDetector,
        memory: Memory,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._coordinator = coordinator
        self._detector = detector
        self._memory = memory
        self._clock = clock

    async def create(
        self,
        asked: pb2.CreateJobRequest,
        verify: Verify | None,
        wait_s: float,
        may_ask: bool,
    ) -> Job:
        """See :meth:`Coordinator.create`.

        ``wait_s``: the caller has so long. ``may_ask``: that is less than a former job may need;
        let it ask again. Raises also :class:`FormerJobError`; :class:`QueuedError`, let it ask
        again.
        """
        request = self.request(asked)
        deadline_s = self._clock() + wait_s
        while True:
            left_s = deadline_s - self._clock()
            try:
                return await self._create(asked, request, verify, max(0.0, left_s))
            except (JobConflictError, JobTokenError) as error:
                # Restarted workers come before anybody knows that their former selves are dead.
                former = self._ending(asked.name)
                if former is None:
                    raise
                left_s = deadline_s - self._clock()
                if left_s <= 0:
                    if former.state is JobState.LEAVING and not former.members:
                        # A switch that is away keeps the name: whoever asks may wait for it.
                        raise FormerJobError(
                            f"{error}, its entries are still on {_where(former)}"
                        ) from None
                    if may_ask:
                        raise FormerJobError(str(error)) from None
                    raise
                await asyncio.sleep(min(CHECK_S, left_s))
            except NoRoomError as error:
                victims = [] if isinstance(error, QuotaError) else self._victims(asked, request)
                if not victims and self._shares(asked):
                    raise  # of an aggregator: no policy shares out its slots
                if not victims:
                    await self._queue(request, asked.queue_s, error, deadline_s)
                for victim in victims:
                    await self._coordinator.push_out(victim, asked.name)

    def _victims(self, asked: pb2.CreateJobRequest, request: Request) -> list[Job]:
        return self._coordinator.registry.victims(
            *(asked.name, asked.world_size, self._memory.sizing.least(request)),
            tenant=asked.tenant,
            priority=asked.priority,
            contributions=asked.contributions,
            mode=asked.mode,
        )

    def request(self, asked: pb2.CreateJobRequest) -> Request:
        """What a memory policy is asked about it."""
        admission = self._coordinator.registry.admission
        tenant = admission.tenant(asked.name, asked.tenant)
        return Request(
            asked.name,
            Said(asked.deadline_unix_s, asked.steps),
            asked.slots,
            admission.priority(tenant, asked.priority),
        )

    async def _create(
        self, asked: pb2.CreateJobRequest, request: Request, verify: Verify | None, wait_s: float
    ) -> Job:
        registry, memory = self._coordinator.registry, self._memory
        slots = asked.slots
        is_new = all(job.name != asked.name for job in registry)
        is_sized = is_new and not self._shares(asked)
        if is_sized and registry.placement is None:  # else its turn comes when all workers are here
            memory.check_turn(request)
            tenant = registry.admission.tenant(asked.name, asked.tenant)
            slots = memory.grant(request, tenant)
        job = await self._coordinator.create(
            *(asked.name, asked.world_size, slots, wait_s),
            tenant=asked.tenant,
            priority=asked.priority,
            token=asked.token,
            verify=verify,
            contributions=asked.contributions,
            mode=asked.mode,
        )
        if is_sized:
            memory.admitted(job, request, asked.queue_s)
        return job

    def _shares(self, asked: pb2.CreateJobRequest) -> bool:
        """Whether it claims slots that jobs share, so that no policy gives it any."""
        mode = self._coordinator.registry.sharing.mode(asked.name, asked.mode)
        return not modes.of(mode).is_sized

    async def _queue(
        self, request: Request, queue_s: float, error: NoRoomError, deadline_s: float
    ) -> None:
        """Returns when slots may be free. Raises ``error``, or :class:`QueuedError`."""
        place = self._memory.enter(request, queue_s, error)
        now_s = self._clock()
        if now_s >= place.ends_s:
            raise self._memory.refusal(request, place, error)
        if now_s >= deadline_s:
            ahead = len(self._memory.queue.ahead(place.demand))
            waited_s = now_s - place.since_s
            raise QueuedError(
                f"job {request.name!r} {QUEUED}, {ahead} jobs before it, for {waited_s:.0f} s:"
                f" {error}"
            )
        await self._memory.wait(place, min(deadline_s, place.ends_s) - now_s)

    def _ending(self, name: str) -> Job | None:
        """The job of this name, if it leaves or its workers may be dead."""
        try:
            job = self._coordinator.registry.get(name)
        except UnknownJobError:
            return None
        return job if job.state is JobState.LEAVING or self._detector.is_dying(job) else None


def _where(job: Job) -> str:
    """Switches that have something of a job, for people."""
    names = ", ".join(map(repr, job.memory))
    return f"switch{'es' if len(job.memory) > 1 else ''} {names}"
