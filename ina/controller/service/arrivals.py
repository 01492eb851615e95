"""How a job comes to be: it waits for its former self, for slots, or pushes others out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ina.controller.errors import (
    FormerJobError,
    JobConflictError,
    JobTokenError,
    UnknownJobError,
)
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.room import with_room
from ina.controller.slots.memory import Memory
from ina.controller.watch.failure_detector import CHECK_S, FailureDetector


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
        coordinator = self._coordinator
        registry, deadline_s = coordinator.registry, self._clock() + wait_s
        spec = registry.granted(asked)

        async def take() -> Job:
            return await self._create(asked, deadline_s, may_ask=may_ask)

        def victims() -> list[Job]:
            return registry.victims(spec, self._memory.sizing.least(spec))

        return await with_room(
            *(registry.room, spec, take, victims, coordinator.push_out), deadline_s=deadline_s
        )

    async def _create(self, asked: JobSpec, deadline_s: float, *, may_ask: bool) -> Job:
        """When its former self is gone."""
        while True:
            left_s = deadline_s - self._clock()
            try:
                return await self._coordinator.create(asked, max(0.0, left_s))
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
