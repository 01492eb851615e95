"""What workers may ask (service ``Controller`` of ``ina/rpc/controller.proto``).

Checks requests, and leaves the rest to the coordinator and the failure detector.
"""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace

from ina import modes
from ina.controller.change import Word
from ina.controller.errors import MemberKeyError, UnknownJobError
from ina.controller.job import Job, JobSpec
from ina.controller.jobs import tokens
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.service.access import Guesses
from ina.controller.service.answers import Context, answer, printable, refuse
from ina.controller.service.arrivals import Arrivals
from ina.controller.service.endpoints import (
    MAX_PROCESS_CHARS,
    DataPath,
    address_of,
    check_speaks,
    endpoint_of,
)
from ina.controller.service.show import program_of
from ina.controller.service.tickets import Tickets
from ina.controller.slots.memory import Memory
from ina.controller.watch.failure_detector import FailureDetector, is_up
from ina.controller.watch.leases import Member
from ina.controller.watch.stalls import check_progress
from ina.controller.windows.job_windows import JobWindows
from ina.errors import InvalidInputError
from ina.protocol.spec import RESULTS_UDP_PORT, VERSION
from ina.protocol.verify import Verify, checked_verify
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc
from ina.rpc.limits import address_of as address_of_peer
from ina.trees.errors import JobRequestError

MAX_JOIN_TIMEOUT_S = 3600.0
FORMER_JOB_WAIT_S = 10.0
"""How long CreateJob waits for a former job of the same name to end, or for a lease if longer."""
MAX_TOKEN_CHARS = 1000
MAX_REASON_CHARS = 300
_CAUSES = (pb2.SWITCH_LOST, pb2.SUMS_CORRUPTED)
"""For which a worker that leaves ends its job: no other can go on either."""
MAX_OPERATION = (1 << 63) - 1
"""A store's integers have 64 bits with a sign."""


_FromMember = pb2.HeartbeatRequest | pb2.WatchRequest | pb2.LeaveRequest | pb2.RemapRequest


class WorkerService(rpc.ControllerServicer):
    """Each method's errors end the call with a status, by :mod:`ina.controller.service.answers`."""

    def __init__(
        self,
        coordinator: Coordinator,
        detector: FailureDetector,
        data: Mapping[str, DataPath],
        windows: JobWindows,
        memory: Memory,
        *,
        clock: Callable[[], float] = time.monotonic,
        guesses: Guesses | None = None,
    ) -> None:
        """``data``: by the switch's name. ``guesses``: of tokens, so far."""
        self._coordinator = coordinator
        self._detector = detector
        self._data = data
        self._memory = memory
        self._arrivals = Arrivals(coordinator, detector, memory, clock)
        self._windows = windows
        switches = {name: path.switch for name, path in data.items()}
        self._tickets = Tickets(switches, windows.congestion)
        self._guesses = guesses or Guesses()

    async def CreateJob(  # noqa: N802 (gRPC's name)
        self, request: pb2.CreateJobRequest, context: Context
    ) -> pb2.CreateJobReply:
        """Creates the job, or finds it."""
        remaining_s = context.time_remaining()
        full_wait_s = max(FORMER_JOB_WAIT_S, self._detector.leases.lease_s)
        wait_s = full_wait_s
        if remaining_s is not None:  # leave time for the answer
            wait_s = min(wait_s, 0.8 * remaining_s)
        await self._look_at_token(context, request)
        first, job = await answer(context, self._create(request, wait_s, wait_s < full_wait_s))
        data = self._data[first]
        group = data.results_group(job)
        first_ring_host, last_ring_host = data.device_rings(job)
        registry = self._coordinator.registry
        return pb2.CreateJobReply(
            switch=first,
            switch_host=data.switch.data_host,
            switch_udp_port=data.switch.data_udp_port,
            values_per_packet=data.switch.values,
            program=program_of(data.switch),
            slots=job.slots or registry.usual_slots(job, first),
            switch_shm=data.shm(job),
            results_host="" if group is None else str(group),
            results_udp_port=0 if group is None else RESULTS_UDP_PORT,
            wire_version=VERSION,
            takes_host_nodes=modes.of(job.mode).takes_host_nodes,
            wants_aggregator=registry.site.wants_aggregator(job),
            mode=job.mode,
            first_ring_host=first_ring_host,
            last_ring_host=last_ring_host,
        )

    async def Join(  # noqa: N802
        self, request: pb2.JoinRequest, context: Context
    ) -> pb2.JoinReply:
        """Adds a worker and waits for the others."""
        await self._look_at_token(context, request)
        job = await answer(context, self._join(request))
        return pb2.JoinReply(
            epoch=job.epoch,
            world_size=job.world_size,
            slots=job.slots,
            window=job.window,
            lease_s=self._detector.leases.lease_s,
            heartbeat_s=self._detector.leases.heartbeat_s,
            member_key=tokens.member_key(job.key_seed, job.epoch, request.rank),
            shares_results=self._coordinator.shares_results(job, request.rank),
            congestion=self._windows.congestion(job),
            verify=job.verify or "off",
            check_key=tokens.check_key(job.key_seed, job.epoch) if job.verify == "keyed" else b"",
            trees=self._tickets.trees(job, request.rank),
            node_entities=self._tickets.node_entities(job, request.rank),
            dscp=self._coordinator.registry.admission.dscp(job.tenant),
            aggregator_entities=self._tickets.aggregator_entities(job, request.rank),
        )

    async def Heartbeat(  # noqa: N802
        self, request: pb2.HeartbeatRequest, context: Context
    ) -> pb2.HeartbeatReply:
        """Renews a lease."""
        return await answer(context, self._heartbeat(request))

    async def Remap(  # noqa: N802
        self, request: pb2.RemapRequest, context: Context
    ) -> pb2.RemapReply:
        """What a job's mapping changes to, or how far a worker is with that."""
        return await answer(context, self._remap(request))

    async def Watch(  # noqa: N802
        self, request: pb2.WatchRequest, context: Context
    ) -> AsyncIterator[pb2.JobEvent]:
        """What happens to the worker's job, until it has ended. What its windows shall be comes
        first, then a stall that lasts.

        A worker that comes back too late to see the end, because the controller was away, is told.
        """
        try:
            end = self._fatal_end(request.name, request.epoch)
            if end is not None and self._find(request.name, request.epoch, request.rank) is None:
                yield end
                return
            job = self._member(request)
            with (
                self._coordinator.events.subscribe(job.name) as events,
                self._detector.watching(Member(job.epoch, request.rank)),
            ):
                await context.send_initial_metadata(())  # now the caller knows that it is heard
                for now in (self._windows.event(job), self._detector.stall_event(job)):
                    if now is not None:
                        yield now
                async for event in events:
                    if event.name and event.epoch != job.epoch:
                        continue
                    is_for = event.ranks if event.kind == pb2.JOB_REMAPS else ()
                    if is_for and request.rank not in is_for:
                        continue  # rank 0 alone is asked, of a thousand
                    if event.switch and not _is_at(job, event.switch):
                        continue  # of a switch that others are on
                    yield event
                    if event.kind == pb2.JOB_ENDED:
                        return
        except Exception as error:
            await refuse(context, error)

    async def Leave(  # noqa: N802
        self, request: pb2.LeaveRequest, context: Context
    ) -> pb2.LeaveReply:
        """Removes a worker."""
        await answer(context, self._leave(request))
        return pb2.LeaveReply()

    async def _look_at_token(
        self, context: Context, request: pb2.CreateJobRequest | pb2.JoinRequest
    ) -> None:
        """Counts it where it is wrong, which is said by who needs it; after a pause, where wrong
        ones have come from this address."""
        try:
            job = self._coordinator.registry.get(request.name)
        except UnknownJobError:
            return
        address = address_of_peer(context.peer())
        await self._guesses.wait(address, job.tenant)
        if not tokens.token_matches(request.token, job.token_hash):
            self._guesses.missed(address, job.tenant)

    async def _create(
        self, request: pb2.CreateJobRequest, wait_s: float, may_ask: bool
    ) -> tuple[str, Job]:
        """The switch that the caller sends to, and its job.

        ``may_ask``: the caller has less time than a former job may need; let it ask again.
        """
        if request.wire_version != VERSION:
            raise JobRequestError(
                f"job {request.name!r}: this worker's ina sends packets of wire format"
                f" {request.wire_version}, the controller's switch takes {VERSION}; install"
                " the same version of ina"
            )
        if len(request.token) > MAX_TOKEN_CHARS:
            raise JobRequestError(
                f"job {request.name!r}: a join token of {len(request.token)} characters: at most"
                f" {MAX_TOKEN_CHARS}"
            )
        try:
            verify = checked_verify("verify", request.verify) if request.verify else None
        except InvalidInputError as error:
            raise JobRequestError(f"job {request.name!r}: {error}") from None
        first = self._switch_of(f"job {request.name!r}", request.addresses)
        job = await self._arrivals.create(_asked(request, verify), wait_s, may_ask=may_ask)
        return job.island or first, job

    async def _join(self, request: pb2.JoinRequest) -> Job:
        where = f"job {request.name!r} rank {request.rank}"
        timeout_s = request.timeout_s
        if not (math.isfinite(timeout_s) and 0 < timeout_s <= MAX_JOIN_TIMEOUT_S):
            raise JobRequestError(
                f"{where}: timeout {timeout_s:g} s: want more than 0, at most"
                f" {MAX_JOIN_TIMEOUT_S:g}"
            )
        job = self._coordinator.registry.get(request.name)
        first = job.island or self._data_of(where, request).switch.name
        data = self._data[first]
        endpoint = endpoint_of(request, where, data)
        slots = job.slots or self._coordinator.registry.usual_slots(job, first)
        check_speaks(where, job, slots, endpoint)
        in_ring = data.ring_address(job, request.rank, endpoint.peer.address)
        if in_ring is not None:
            endpoint = replace(endpoint, peer=replace(endpoint.peer, address=in_ring))
        # A worker that says its port has it alone: it shares memory with the switch.
        if request.takes_shared_results and not request.switch_port:
            endpoint = replace(endpoint, results_group=data.results_group(job))
        return await self._coordinator.join(
            request.name, request.rank, endpoint, timeout_s, token=request.token
        )

    async def _heartbeat(self, request: pb2.HeartbeatRequest) -> pb2.HeartbeatReply:
        job = self._member(request)
        progress = request.progress if request.HasField("progress") else None
        if progress is not None:
            _check_progress(job, progress, _who(request))
        self._know_process(job, request)
        self._detector.heard(Member(job.epoch, request.rank), progress)
        if progress is not None:
            self._memory.hear(job, request.rank, progress)
            self._windows.hear(job, request.rank, progress)
        if progress is not None and progress.shared_results_missing:
            self._coordinator.give_own_results(job, request.rank)
        leases = self._detector.leases
        return pb2.HeartbeatReply(
            lease_s=leases.lease_s,
            heartbeat_s=leases.heartbeat_s,
            remaps_to=self._coordinator.changes.epoch_to(job, request.rank),
            ranks_here=len(job.members),
        )

    async def _remap(self, request: pb2.RemapRequest) -> pb2.RemapReply:
        job = self._member(request)
        if request.first_operation > MAX_OPERATION:
            raise JobRequestError(
                f"{_who(request)}: changes at operation {request.first_operation}: at most"
                f" {MAX_OPERATION}"
            )
        word = Word(
            request.to_epoch,
            request.first_operation,
            declined=request.declined,
            done=request.done,
            reason=printable(request.reason, MAX_REASON_CHARS),
        )
        told = self._coordinator.changes.hear(job, request.rank, word)
        if told is None:
            return pb2.RemapReply()
        return pb2.RemapReply(mapping=self._tickets.mapping(job, request.rank, told))

    def _know_process(self, job: Job, request: pb2.HeartbeatRequest) -> None:
        """A restarted controller has the worker's address from its store, and this from here."""
        at, process = job.members[request.rank], printable(request.process, MAX_PROCESS_CHARS)
        if process and at.process != process:
            job.members[request.rank] = replace(at, process=process)

    async def _leave(self, request: pb2.LeaveRequest) -> None:
        try:
            job = self._member(request)
        except UnknownJobError:
            return  # gone already
        why = printable(" ".join(request.reason.split()), MAX_REASON_CHARS)
        if request.HasField("progress"):
            _check_progress(job, request.progress, _who(request))
            self._detector.leaves(job, request.rank, request.progress, why)
        if request.cause in _CAUSES and len(job.members) > 1:
            self._detector.gives_up(job, request.rank, why, request.cause)
        await self._coordinator.leave(request.name, request.rank, request.epoch)

    def _member(self, request: _FromMember) -> Job:
        """The job that the caller is a worker of, which may send.

        Raises :class:`UnknownJobError` if that incarnation has ended, or the rank has left;
        :class:`JobRequestError` and :class:`MemberKeyError` about its key.
        """
        who = _who(request)
        if not request.member_key:
            raise JobRequestError(f"{who}: the call carries no member key")
        job = self._find(request.name, request.epoch, request.rank)
        if job is None:
            end = self._fatal_end(request.name, request.epoch)
            why = f": {end.reason}" if end is not None else ""
            raise UnknownJobError(f"{who}: epoch {request.epoch} of it has ended{why}")
        key = tokens.member_key(job.key_seed, job.epoch, request.rank)
        if not hmac.compare_digest(key, request.member_key):
            raise MemberKeyError(f"{who}: the member key is wrong")
        return job

    def _find(self, name: str, epoch: int, rank: int) -> Job | None:
        for job in self._coordinator.registry:
            if job.name == name:
                return job if job.epoch == epoch and is_up(job) and rank in job.members else None
        return None

    def _fatal_end(self, name: str, epoch: int) -> pb2.JobEvent | None:
        for event in reversed(self._coordinator.events.history(name)):
            if event.epoch == epoch and event.fatal:
                return event
        return None

    def _switch_of(self, where: str, addresses: Sequence[str]) -> str:
        """See :meth:`Placement.switch_of`; raises :class:`JobRequestError`."""
        placement = self._coordinator.registry.placement
        return placement.switch_of([address_of(where, text) for text in addresses])

    def _data_of(self, where: str, request: pb2.JoinRequest) -> DataPath:
        name = request.switch or self._switch_of(where, [request.host])
        if name not in self._data:
            raise JobRequestError(f"{where}: no switch is called {name!r}")
        return self._data[name]


def _asked(request: pb2.CreateJobRequest, verify: Verify | None) -> JobSpec:
    return JobSpec(
        request.name,
        request.world_size,
        request.slots,
        request.tenant,
        request.priority,
        request.mode,
        verify,
        request.contributions,
        request.deadline_unix_s,
        request.steps,
        request.queue_s,
        request.token,
    )


def _who(request: _FromMember) -> str:
    return f"job {request.name!r} rank {request.rank}"


def _check_progress(job: Job, progress: pb2.Progress, where: str) -> None:
    """Raises :class:`JobRequestError`. What is of a mapping that is gone says nothing any more."""
    slots = {mapping.epoch: mapping.slots for mapping in job.mappings}
    of = slots.get(progress.mapping_epoch or job.epoch, 0)
    if not of:
        progress.ClearField("lane_seqs")
        progress.ClearField("lanes_waiting")
    check_progress(progress, of or job.slots, where)


def _is_at(job: Job, switch: str) -> bool:
    """Whether the job is summed there, or may be."""
    return job.placed is None or any(switch in mapping.forest for mapping in job.mappings)
