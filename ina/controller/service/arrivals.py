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
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.slots.memory import Memory
from ina.controller.watch.failure_detector import CHECK_S, FailureDetector
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

    async def create(self, asked: JobSpec, wait_s: float, *, may_ask: bool) -> Job:
        """See :meth:`Coordinator.create`.

        ``wait_s``: the caller has so long. ``may_ask``: that is less than a former job may need;
        let it ask again. Raises also :class:`FormerJobError`; :class:`QueuedError`, let it ask
        again.
        """
        spec = self._coordinator.registry.granted(asked)
        deadline_s = self._clock() + wait_s
        while True:
            left_s = deadline_s - self._clock()
            try:
                return await self._create(asked, max(0.0, left_s))
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
                victims = [] if isinstance(error, QuotaError) else self._victims(spec)
                if not victims and not modes.of(spec.mode).is_sized:
                    raise  # of an aggregator: no policy shares out its slots
                if not victims:
                    await self._queue(spec, error, deadline_s)
                for victim in victims:
                    await self._coordinator.push_out(victim, asked.name)

    def _victims(self, spec: JobSpec) -> list[Job]:
        return self._coordinator.registry.victims(spec, self._memory.sizing.least(spec))

    async def _create(self, asked: JobSpec, wait_s: float) -> Job:
        before = set(self._coordinator.registry)
        job = await self._coordinator.create(asked, wait_s)
        # One that claims slots which jobs share gets none by a policy.
        if job not in before and modes.of(job.mode).is_sized:
            self._memory.admitted(job)
        return job

    async def _queue(self, spec: JobSpec, error: NoRoomError, deadline_s: float) -> None:
        """Returns when slots may be free. Raises ``error``, or :class:`QueuedError`."""
        place = self._memory.enter(spec, error)
        now_s = self._clock()
        if now_s >= place.ends_s:
            raise self._memory.refusal(spec, place, error)
        if now_s >= deadline_s:
            ahead = len(self._memory.queue.ahead(place.demand))
            waited_s = now_s - place.since_s
            raise QueuedError(
                f"job {spec.name!r} {QUEUED}, {ahead} jobs before it, for {waited_s:.0f} s: {error}"
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
