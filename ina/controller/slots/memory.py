"""Slots as a resource that jobs share: who has how many and why, who waits, who is resized.

Puts together what is apart: the policy's word (:mod:`~ina.controller.slots.sizing`), the queue, the
resizes, and what is told of all that.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable, Sequence

from ina import modes
from ina.controller.config import JobsConfig
from ina.controller.errors import NoRoomError, QueuedError, QuotaError, SlotQuotaError
from ina.controller.job import Job, JobSpec
from ina.controller.jobs.registry import Registry
from ina.controller.jobs.room import Room
from ina.controller.memory.demand import StepModel
from ina.controller.memory.policies import policy_for
from ina.controller.retry import wait_for
from ina.controller.slots.decisions import Decisions
from ina.controller.slots.queue import SlotQueue, Waiting
from ina.controller.slots.sizing import Sizing
from ina.rpc import controller_pb2 as pb2
from ina.rpc.queued import QUEUED

MAKE_ROOM_S = 20.0
"""A job to which its policy gives slots waits so long for others to be resized, at least: longer
than a change may take until it is decided, and less than workers wait for their controller."""


class Memory(Room):
    """Of all switches of a controller, in one term of it."""

    def __init__(
        self,
        config: JobsConfig,
        registry: Registry,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        share = next(iter(registry.switches.values())).memory.cost("", 0)
        self.policy = policy_for(config, share)
        self.sizing = Sizing(
            registry,
            self.policy,
            floor=config.floor,
            default=config.slots,
            clock=clock,
            unix_clock=registry.unix_s,
        )
        self.decisions = Decisions(registry.unix_s)
        self.queue = SlotQueue(self.policy.order, clock)
        self.kicked = asyncio.Event()
        """Set when jobs are to be looked at soon: others may be resized."""
        self._clock = clock
        self._wanted: weakref.WeakKeyDictionary[Job, Sequence[str]] = weakref.WeakKeyDictionary()
        """By job of a fabric: the switches that are to sum it."""
        self.takes_what_is_left = self.policy.resizes

    def _check_turn(self, spec: JobSpec) -> None:
        """Raises :class:`NoRoomError`: others wait for slots that are served before this one."""
        ahead = self.queue.ahead(self.sizing.demand_of(spec)) if len(self.queue) else []
        if ahead:
            jobs = "job waits" if len(ahead) == 1 else "jobs wait"
            raise NoRoomError(
                f"job {spec.name!r}: {len(ahead)} {jobs} for slots before it, the first is"
                f" {ahead[0]!r}"
            )

    def hear(self, job: Job, rank: int, progress: pb2.Progress) -> None:
        """A worker says how it gets on."""
        needs = self.sizing.needs(job)
        was_known = needs.is_known
        self.sizing.hear(job, rank, progress)
        if needs.is_known and not was_known:
            self.kicked.set()

    def granted(self, job: Job) -> None:
        """A job has slots for the first time."""
        self.queue.leave(job.name)
        if modes.of(job.mode).is_sized:  # else it shares slots, and no policy gives it any
            why = self.sizing.reason(job, job.slots)
            self.decisions.add(job.name, "grant", why, slots=job.slots)

    def resized_by_hand(self, job: Job, before: int, mode: str) -> None:
        """An operator has begun to give it other slots than ``before``, or another mode."""
        slots = job.newest_mapping.slots
        what = "grow" if slots > before else "shrink" if slots < before else "move"
        why = "an operator asked for it" + (f", with mode {mode}" if mode else "")
        if self.policy.resizes:
            why += f"; until policy {self.policy.name} wants something else"
        self.decisions.add(job.name, what, why, before=before, slots=slots)

    def _enter(self, spec: JobSpec, error: NoRoomError, switches: Sequence[str]) -> Waiting:
        """A job waits; ``error``: for what. ``switches``: where, if that is known.

        A job to which its policy gives slots waits for others to be resized, whatever it says.
        """
        queue_s = spec.queue_s
        is_sized, of_quota = modes.of(spec.mode).is_sized, isinstance(error, QuotaError)
        stands_aside = of_quota or not is_sized
        if not stands_aside and self.sizing.would_have(spec, switches):
            queue_s = max(queue_s, MAKE_ROOM_S)
        waits_already = spec.name in self.queue
        place = self.queue.enter(self.sizing.demand_of(spec), queue_s)
        place.stands_aside = stands_aside
        place.gains = is_sized and (not of_quota or isinstance(error, SlotQuotaError))
        if not waits_already and queue_s > 0:
            self.decisions.add(spec.name, "wait", f"for {queue_s:g} s at most: {error}")
            self.kicked.set()
        return place

    def _refusal(self, spec: JobSpec, place: Waiting, error: NoRoomError) -> NoRoomError:
        """A job has waited for long enough."""
        waited_s = self._clock() - place.since_s
        ahead = len(self.queue.ahead(place.demand))
        self.queue.leave(spec.name)
        after = f" ({waited_s:.0f} s in the queue, {ahead} jobs before it)" if waited_s > 0 else ""
        self.decisions.add(spec.name, "refuse", f"{error}{after}")
        return type(error)(f"{error}{after}")

    def sized(self, job: Job, switches: Sequence[str]) -> int:
        """Slots that a new job is to take at each of these; none: at any one."""
        self._wanted[job] = switches
        self._check_turn(job.spec)
        return self.sizing.grant(job.spec, switches, self._most(job, len(switches) or 1))

    def _most(self, job: Job, switches: int) -> int | None:
        """Slots that its tenant's quota leaves a job at each of so many switches; None: any
        number."""
        others = [it for it in self._registry if it is not job]
        left = self._registry.admission.slots_left(job.tenant, others)
        return None if left is None else left // switches

    async def wait(
        self, spec: JobSpec, error: NoRoomError, job: Job | None, deadline_s: float
    ) -> None:
        """See :meth:`Room.wait`."""
        place = self._enter(spec, error, () if job is None else self._wanted.get(job, ()))
        now_s = self._clock()
        if now_s >= place.ends_s:
            raise self._refusal(spec, place, error)
        if now_s >= deadline_s:
            ahead = len(self.queue.ahead(place.demand))
            waited_s = now_s - place.since_s
            raise QueuedError(
                f"job {spec.name!r} {QUEUED}, {ahead} jobs before it, for {waited_s:.0f} s: {error}"
            )
        place.callers += 1
        place.woken.clear()
        try:
            await wait_for(place.woken, min(deadline_s, place.ends_s) - now_s)
        finally:
            place.callers -= 1

    def known_steps(self, job: Job) -> StepModel | None:
        """See :meth:`Room.known_steps`."""
        return self.sizing.known_steps(job)
