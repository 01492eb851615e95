"""What operators may ask (service ``Operator`` of ``ina/rpc/controller.proto``).

``ShowController`` is answered in every role, so it is with the
:mod:`~ina.controller.service.switchboard`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from ina.controller.errors import UnknownJobError, UnknownSwitchError
from ina.controller.job import Job
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.outages import StoredOutages
from ina.controller.service.answers import Context, answer, printable, refuse
from ina.controller.service.fabric import show_fabric
from ina.controller.service.planning import list_decisions, plan_job
from ina.controller.service.show import (
    show_item,
    show_job,
    show_member,
    show_switch,
    show_tenants,
)
from ina.controller.service.show_tree import counts_on_hosts, read_counters, show_tree
from ina.controller.slots.memory import Memory
from ina.controller.switches.switch import Switch
from ina.controller.watch.failure_detector import FailureDetector
from ina.controller.windows.job_windows import JobWindows
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc
from ina.tables.values import Item
from ina.trees.errors import JobRequestError

_log = logging.getLogger(__name__)

MAX_REASON_CHARS = 500


class OperatorService(rpc.OperatorServicer):
    """Each method's errors end the call with a status, by :mod:`ina.controller.service.answers`."""

    def __init__(
        self,
        coordinator: Coordinator,
        detector: FailureDetector,
        memory: Memory,
        outages: StoredOutages,
        windows: JobWindows,
    ) -> None:
        self._windows = windows
        self._memory = memory
        self._coordinator = coordinator
        self._detector = detector
        self._outages = outages

    async def ListJobs(  # noqa: N802 (gRPC's name)
        self, request: pb2.ListJobsRequest, context: Context
    ) -> pb2.ListJobsReply:
        """Every job and its ranks."""
        jobs = self._coordinator.jobs()
        return pb2.ListJobsReply(jobs=[show_job(job, self._detector) for job in jobs])

    async def ListTenants(  # noqa: N802
        self, request: pb2.ListTenantsRequest, context: Context
    ) -> pb2.ListTenantsReply:
        """Every tenant, what it uses and may use."""
        jobs = self._coordinator.jobs()
        admission = self._coordinator.registry.admission
        return pb2.ListTenantsReply(tenants=show_tenants(admission, jobs))

    async def ShowJob(  # noqa: N802
        self, request: pb2.ShowJobRequest, context: Context
    ) -> pb2.ShowJobReply:
        """One job, its members and its history; of a job that has ended, its history alone."""
        return await answer(context, self._show_job(request.name))

    async def ListDecisions(  # noqa: N802
        self, request: pb2.ListDecisionsRequest, context: Context
    ) -> pb2.ListDecisionsReply:
        """Why jobs have as many slots as they have."""
        return list_decisions(self._memory, request.job)

    async def PlanJob(  # noqa: N802
        self, request: pb2.PlanJobRequest, context: Context
    ) -> pb2.PlanJobReply:
        """What a job would get now."""
        return await answer(context, self._plan(request))

    async def _plan(self, request: pb2.PlanJobRequest) -> pb2.PlanJobReply:
        return plan_job(self._coordinator, self._memory, request)

    async def WatchJobs(  # noqa: N802
        self, request: pb2.WatchJobsRequest, context: Context
    ) -> AsyncIterator[pb2.JobEvent]:
        """Events as they happen, until the caller or the controller goes."""
        try:
            with self._coordinator.events.subscribe(request.name or None) as events:
                await context.send_initial_metadata(())  # nothing is missed from now on
                async for event in events:
                    yield event
        except Exception as error:
            await refuse(context, error)

    async def EvictJob(  # noqa: N802
        self, request: pb2.EvictJobRequest, context: Context
    ) -> pb2.EvictJobReply:
        """Ends a job."""
        given = printable(" ".join(request.reason.split()), MAX_REASON_CHARS)
        reason = f"evicted by an operator{': ' if given else ''}{given}"
        return pb2.EvictJobReply(job=await answer(context, self._evict(request.name, reason)))

    async def ResizeJob(  # noqa: N802
        self, request: pb2.ResizeJobRequest, context: Context
    ) -> pb2.ResizeJobReply:
        """Begins to give a running job another number of slots, or another mode."""
        job = await answer(context, self._resize(request))
        return pb2.ResizeJobReply(job=show_job(job, self._detector))

    async def _resize(self, request: pb2.ResizeJobRequest) -> Job:
        before = self._coordinator.registry.get(request.name).slots
        job = await self._coordinator.changes.resize(
            request.name, request.slots, "asked for by an operator", mode=request.mode
        )
        self._memory.resized_by_hand(job, before, request.mode)
        return job

    async def _evict(self, name: str, reason: str) -> pb2.Job:
        """The job as it has ended, with the slots that it had."""
        job = self._coordinator.registry.get(name)
        had = show_job(job, self._detector)
        shown = show_job(await self._coordinator.evict(name, reason), self._detector)
        shown.first_slot, shown.slots = had.first_slot, had.slots
        return shown

    async def ShowSwitch(  # noqa: N802
        self, request: pb2.ShowSwitchRequest, context: Context
    ) -> pb2.ShowSwitchReply:
        """What a switch has, read back."""
        return await answer(context, self.show(request.switch))

    async def ShowFabric(  # noqa: N802
        self, request: pb2.ShowFabricRequest, context: Context
    ) -> pb2.ShowFabricReply:
        """Switches, links, hosts, and the trees of jobs over them."""
        return await answer(
            context, show_fabric(self._coordinator, self._detector, self._outages, self._windows)
        )

    async def SetDown(  # noqa: N802
        self, request: pb2.SetDownRequest, context: Context
    ) -> pb2.SetDownReply:
        """Says that a link or a switch is down, or is not any more."""
        return await answer(context, self._set_down(request))

    async def _set_down(self, request: pb2.SetDownRequest) -> pb2.SetDownReply:
        if self._coordinator.registry.placement.is_known_early:
            raise JobRequestError(
                "its switches are no fabric: the controller's file has no [[link]]"
            )
        changed = self._outages.put(request.name, is_down=request.down)
        return pb2.SetDownReply(changed=changed, down=self._outages.names)

    async def RemoveForeign(  # noqa: N802
        self, request: pb2.RemoveForeignRequest, context: Context
    ) -> pb2.RemoveForeignReply:
        """Removes what no job owns."""
        removed = await answer(context, self._remove_foreign(request.switch))
        return pb2.RemoveForeignReply(removed=[show_item(item) for item in removed])

    async def show(self, switch: str = "") -> pb2.ShowSwitchReply:
        """The reply of ShowSwitch; raises :class:`SwitchError`, :class:`UnknownSwitchError`."""
        return await show_switch(self._coordinator, self._find(switch))

    async def _remove_foreign(self, switch: str) -> list[Item]:
        return await self._coordinator.remove_foreign(self._find(switch))

    def _find(self, name: str) -> Switch:
        """By its name; the empty one is that of a switch that is alone, but for aggregators."""
        switches = self._coordinator.switches
        first, *others = (it for it in switches.values() if it.capacity.is_switch)
        found = None if name or others else first
        found = switches.get(name, found)
        if found is None:
            known = ", ".join(switches)
            what = f"no switch is called {name!r}" if name else "name a switch"
            raise UnknownSwitchError(f"{what}: this controller has {known}")
        return found

    async def _show_job(self, name: str) -> pb2.ShowJobReply:
        history = self._coordinator.events.history(name)
        try:
            job = self._coordinator.registry.get(name)
        except UnknownJobError:
            if not history:
                raise
            return pb2.ShowJobReply(job=pb2.Job(name=name, state="ended"), history=history)
        switches = [self._coordinator.switches[name] for name in job.switches]
        of_job = dict.fromkeys(job.numbers, job)
        counters, unread = await read_counters(dict.fromkeys(switches, of_job))
        shown = show_job(job, self._detector)
        if (windows := self._windows.show(job)) is not None:
            shown.windows.CopyFrom(windows)
        return pb2.ShowJobReply(
            job=shown,
            members=[show_member(job, rank, self._detector) for rank in sorted(job.members)],
            counters=counters,
            history=history,
            tree=show_tree(job, counters, unread, counts_on_hosts(job, self._detector)),
        )
