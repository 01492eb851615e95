"""One worker's process in the virtual network: it joins a job, reduces arrays, leaves or dies.

It does what :class:`ina.host.Session` does, by the same words to the controller and with the same
core; where a Session has threads, it has tasks, and where it blocks, one awaits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from ina.errors import InaError
from ina.extension import sim as native
from ina.host.arrays import Array, check_input, prepare_output, reduction
from ina.host.calls import check_created, ticket_of
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    CorruptedSumError,
    MembershipEndedError,
    OperationTimeoutError,
    RanksDifferError,
    SessionClosedError,
)
from ina.host.failure import describe_corruption, who
from ina.host.manner import Manner
from ina.host.remapping import Remapping
from ina.host.ticket import Ticket
from ina.protocol.collective import Collective
from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2
from ina.sim.client import SimClient
from ina.sim.errors import CrashedError
from ina.sim.loop import VirtualLoop
from ina.sim.membership import SimMembership
from ina.sim.own_aggregator import PATIENCE_S
from ina.sim.process import Process
from ina.sim.seat import Seat, manner_of, open_worker

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0
_ANSWER_S = 3.0
"""Where ranks differ: until the controller has told how."""

_T = TypeVar("_T")


@dataclass
class _Operation:
    """An array under way; memory must stay until it has ended."""

    array: Array
    out: Array
    done: asyncio.Future[Array]


class Rank:
    """Make it by :meth:`ina.sim.plane.ControlPlane.rank`. One incarnation: who rejoins is another.

    After an error of the job each operation ends with it, and :meth:`leave` tells the controller.
    After :meth:`crash` everything raises :class:`CrashedError`.
    """

    def __init__(
        self, loop: VirtualLoop, network: native.Network, process: Process, client: SimClient,
        seat: Seat,
    ) -> None:  # fmt: skip
        """``client``: of this process."""
        self.seat = seat
        self.process = process
        self.ticket: Ticket | None = None
        """Once it has joined: by which it works."""
        self.worker: native.Worker | None = None
        """The native one, while it is in the job and has not failed."""
        self.error: InaError | None = None
        """Why the job cannot go on."""
        self.breach = ""
        """How its worker has had more in flight than it may, or in other slots; empty: it has not.
        """
        self._loop = loop
        self._network = network
        self._client = client
        self._membership: SimMembership | None = None
        self._manner: Manner | None = None
        self._operations: dict[int, _Operation] = {}
        self._closed = False
        process.at_death(self._dies)

    @property
    def now_ns(self) -> int:
        """Virtual time."""
        return self._network.now_ns

    def __str__(self) -> str:
        return self.process.name

    async def join(self) -> Ticket:
        """Gets its place in the job, once all ranks are there.

        Raises ControllerError and what derives from it, :class:`CrashedError`.
        """
        return await self._in_process(self._join())

    async def all_reduce(self, array: Array, op: str = "sum") -> Array:
        """The sum, or ``"avg"``, of the arrays of all ranks, each of the same shape and dtype."""
        return await self.submit(array, op)

    def submit(
        self, array: Array, op: str = "sum", out: Array | None = None
    ) -> asyncio.Future[Array]:
        """Begins an all-reduce; several may be under way. ``array`` must stay as it is meanwhile.

        The future raises JobFailedError and what derives from it, OperationTimeoutError,
        SessionClosedError, :class:`CrashedError`.
        """
        what = Collective(check_input(array), array.size, reduction(op))
        out = prepare_output(array, out)
        operation = _Operation(array, out, self._loop.create_future())
        error = self._refusal()
        if error is not None:
            _fail(operation.done, error)
            return operation.done
        assert self.worker is not None
        begun = self.worker.submit(array.ctypes.data, out.ctypes.data, what)
        self._operations[begun.id] = operation
        return operation.done

    async def leave(self) -> None:
        """Leaves the job, and ends. What is pending ends with SessionClosedError. Idempotent."""
        if not self._closed:
            self._closed = True
            try:
                await self._in_process(self._leave())
            finally:
                self.process.kill()

    def crash(self, *, silently: bool = False) -> None:
        """``kill -9``: it says nothing more, to nobody. ``silently``: its host dies with it."""
        if silently:
            self._client.vanish()
        self.process.kill()

    def pause(self, for_s: float) -> None:
        """SIGSTOP, and SIGCONT later: it does nothing meanwhile, and what comes waits."""
        if self.process.is_dead:
            return
        end_ns = self._network.now_ns + round(for_s * 1e9)
        if self.worker is not None:
            self.worker.pause(end_ns)
        self.process.stop()
        self._loop.call_at(end_ns / 1e9, self.process.go_on)

    def want_own_results(self) -> None:
        """From now on results by IP multicast do not reach it, and it tells the controller so."""
        if self.worker is not None and self._membership is not None:
            self.worker.leave_group()
            self._membership.lacks_results = True
            self._membership.speak()

    # -- joining --

    async def _join(self) -> Ticket:
        seat, client = self.seat, self._client
        deadline_s = self._loop.time() + seat.timeout_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await self._try_once(deadline_s)
            except (ControllerUnavailableError, MembershipEndedError) as error:
                if self._loop.time() + pause_s >= deadline_s:
                    raise ControllerTimeoutError(
                        f"{error}, tried for {seat.timeout_s:g} s"
                    ) from None
            client.try_next()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _try_once(self, deadline_s: float) -> Ticket:
        seat, client = self.seat, self._client
        created = await client.create_job(
            pb2.CreateJobRequest(
                name=seat.job,
                world_size=seat.world_size,
                slots=seat.slots,
                tenant=seat.tenant,
                priority=seat.priority,
                mode=seat.mode,
                token=seat.token,
                wire_version=VERSION,
                verify=seat.verify,
                addresses=[str(seat.address)],
            ),
            self._left_s(deadline_s),
        )
        check_created(created, client.address)
        own = seat.aggregator if created.wants_aggregator and seat.rank == 0 else None
        joined = await client.join(
            pb2.JoinRequest(
                name=seat.job,
                rank=seat.rank,
                host=str(seat.address),
                udp_port=seat.udp_port,
                switch_port=seat.switch_port,
                timeout_s=self._left_s(deadline_s),
                token=seat.token,
                takes_shared_results=seat.shares_results and bool(created.results_host),
                process=self.process.name,
                aggregator=None if own is None else own.open(),
            )
        )
        if own is not None:
            own.program(joined.aggregator_entities, joined.trees[0].job)
        ticket = self.ticket = ticket_of(seat.job, seat.rank, created, joined)
        manner = self._manner = manner_of(seat, ticket)
        name = self.process.name
        worker = open_worker(self._network, name, seat, manner, ticket, created, joined)
        self.worker = worker
        self._loop.watch(worker, self._on_notice)
        remapping = Remapping(*(ticket, manner, worker, self._works_by), aggregator=own)
        patience_s = 0.0 if own is None else PATIENCE_S
        self._membership = SimMembership(
            self, worker, client, ticket, joined, remapping, patience_s=patience_s
        )
        self._membership.start(self.process)
        return ticket

    def _works_by(self, ticket: Ticket) -> None:
        self.ticket = ticket

    def _left_s(self, deadline_s: float) -> float:
        return max(deadline_s - self._loop.time(), 0.001)

    async def _leave(self) -> None:
        if self._membership is None:
            return
        if self.error is None:
            await self._membership.wait_for_others()
        last = self._membership.stop()
        self._stop_sending(SessionClosedError(f"{self}: the session was closed"))
        try:
            await self._client.leave(self._membership.credentials, last, self.error)
        except MembershipEndedError:
            pass  # it has ended already
        except ControllerError as error:
            self.error = self.error or error

    # -- what becomes of operations --

    def fail(self, error: InaError) -> None:
        """The job cannot go on."""
        if self.error is None and not self._closed:
            self.error = error
            self._stop_sending(error)

    def _on_notice(self, event: native.WorkerEvent, tensor: int) -> None:
        if self._manner is not None and (error := self._manner.window_error()) is not None:
            self.fail(error)
            return
        if event is native.WorkerEvent.DONE:
            operation = self._operations.pop(tensor)
            if not operation.done.done():
                operation.done.set_result(operation.out)
        elif event is native.WorkerEvent.BREACH:
            self.breach = "" if self.worker is None else self.worker.breach
        elif event is native.WorkerEvent.STALLED:
            self.fail(OperationTimeoutError(f"{self._who()}: {self._stalled()}"))
        elif event is native.WorkerEvent.CORRUPTED:
            self.fail(CorruptedSumError(self._corrupted()))
        elif self._membership is not None:
            self._membership.speak()  # the controller is to say how they differ
            self._loop.call_later(_ANSWER_S, self._differs, tensor)

    def _stalled(self) -> str:
        report = None if self.worker is None else self.worker.failure()
        said = "" if self._membership is None else self._membership.said
        waited_s = 0.0 if report is None else report.waited_ns / 1e9
        return f"no result for {waited_s:.1f} s{f': {said}' if said else ''}"

    def _corrupted(self) -> str:
        assert self.ticket is not None
        assert self.worker is not None
        found = self.worker.corruption()
        assert found is not None
        return describe_corruption(self.ticket, found)

    def _differs(self, tensor: int) -> None:
        self.fail(
            RanksDifferError(
                f"{self._who()}: ranks differ: the result of all-reduce {tensor} holds what another"
                " rank has submitted instead, or before it"
            )
        )

    def _who(self) -> str:
        return str(self) if self.ticket is None else who(self.ticket)

    def _refusal(self) -> InaError | None:
        if self.process.is_dead and not self._closed:
            return CrashedError(f"{self} has crashed")
        if self._closed or (self.worker is None and self.error is None):
            return SessionClosedError(f"{self}: the session is not open")
        return self.error

    def _stop_sending(self, error: InaError) -> None:
        worker, self.worker = self.worker, None
        if worker is not None:
            if self._membership is not None:
                self._membership.remember()
            self._loop.watch(worker, None)
            worker.crash()
        pending, self._operations = self._operations, {}
        for operation in pending.values():
            _fail(operation.done, error)

    def _dies(self) -> None:
        if self.seat.aggregator is not None:
            self.seat.aggregator.close()
        self._stop_sending(CrashedError(f"{self} has crashed"))

    async def _in_process(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Runs it as this process's; it ends with the process."""
        if self.process.is_dead:
            work.close()
            raise CrashedError(f"{self} has crashed")
        task = self.process.spawn(work)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise
        if self.process.is_dead:
            raise CrashedError(f"{self} has crashed")
        return task.result()


def _fail(future: asyncio.Future[Array], error: InaError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # seen: nobody need wait for it
