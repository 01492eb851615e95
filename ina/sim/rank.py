"""One worker's process in the virtual network: it joins a job, reduces arrays, leaves or dies.

What :class:`ina.host.Session` is in threads, this is in tasks: the rules of a membership are the
same, and so is the native core; where a Session blocks, one awaits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ina.errors import InaError
from ina.extension import sim as native
from ina.host.arrays import Array, check_input, prepare_output, reduction
from ina.host.errors import SessionClosedError
from ina.host.manner import Manner
from ina.host.member.client import ControllerClient
from ina.host.member.core import MemberCore
from ina.host.member.join import Grant, JoinRequest, join, leave
from ina.host.member.latch import FailureLatch, Voice
from ina.host.remapping import Remapping
from ina.host.ticket import Ticket
from ina.protocol.collective import Collective, CollectiveKind
from ina.sim.errors import CrashedError
from ina.sim.loop import VirtualLoop
from ina.sim.process import Process
from ina.sim.seat import Seat, SimHost, SimLink, SimShared, manner_of
from ina.sim.task_driver import TaskDriver
from ina.sim.wire import SimWire

_T = TypeVar("_T")


@dataclass
class _Operation:
    """An array under way; memory must stay until it has ended."""

    array: Array
    out: Array | None
    done: asyncio.Future[Array | None]


@dataclass(frozen=True)
class _Place:
    """What a rank has once it has joined."""

    worker: native.Worker
    latch: FailureLatch
    manner: Manner
    member: MemberCore


class Rank:
    """Make it by :meth:`ina.sim.plane.ControlPlane.rank`. One incarnation: who rejoins is another.

    After an error of the job each operation ends with it, and :meth:`leave` tells the controller.
    After :meth:`crash` everything raises :class:`CrashedError`.
    """

    def __init__(
        self, loop: VirtualLoop, network: native.Network, process: Process, wire: SimWire,
        seat: Seat,
    ) -> None:  # fmt: skip
        """``wire``: of this process."""
        self.seat = seat
        self.process = process
        self.breach = ""
        """How its worker has had more in flight than it may, or in other slots; empty: it has not.
        """
        self._loop = loop
        self._network = network
        self._wire = wire
        self._driver = TaskDriver(process)
        self._shared = SimShared()
        self._place: _Place | None = None
        self._operations: dict[int, _Operation] = {}
        self._has_ended = False  # nothing of it goes out any more
        self._closed = False
        process.at_death(self._dies)

    @property
    def ticket(self) -> Ticket | None:
        """Once it has joined: by which it works."""
        return None if self._place is None else self._place.latch.ticket

    @property
    def worker(self) -> native.Worker | None:
        """The native one, while it is in the job and has not failed."""
        return None if self._place is None or self._has_ended else self._place.worker

    @property
    def manner(self) -> Manner | None:
        """How it behaves, once it has joined."""
        return None if self._place is None else self._place.manner

    @property
    def error(self) -> InaError | None:
        """Why the job cannot go on."""
        return None if self._place is None else self._place.latch.settled()

    def __str__(self) -> str:
        return self.process.name

    async def join(self) -> Ticket:
        """Gets its place in the job, once all ranks are there.

        Raises ControllerError and what derives from it, :class:`CrashedError`.
        """
        return await self._in_process(self._join())

    async def all_reduce(self, array: Array, op: str = "sum") -> Array:
        """The sum, or ``"avg"``, of the arrays of all ranks, each of the same shape and dtype."""
        found = await self.submit(array, op)
        assert found is not None
        return found

    def submit(
        self, array: Array, op: str = "sum", out: Array | None = None, root: int | None = None
    ) -> asyncio.Future[Array | None]:
        """Begins an all-reduce; several may be under way. ``array`` must stay as it is meanwhile.

        ``root``: the rank that alone gets the result; the others get None.

        The future raises JobFailedError and what derives from it, OperationTimeoutError,
        SessionClosedError, :class:`CrashedError`.
        """
        what = Collective(check_input(array), array.size, reduction(op))
        if root is not None:
            what = what._replace(kind=CollectiveKind.REDUCE, root=root)
        out = prepare_output(array, out) if what.gets(self.seat.rank) else None
        operation = _Operation(array, out, self._loop.create_future())
        error, place = self._refusal(), self._place
        if error is not None:
            _fail(operation.done, error)
            return operation.done
        assert place is not None
        to = 0 if out is None else out.ctypes.data
        begun = place.worker.submit(array.ctypes.data, to, what)
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
            self._wire.vanish()
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
        if self.worker is not None and self._place is not None:
            self.worker.leave_group()
            self._shared.missing = True
            self._place.member.speak()

    async def _join(self) -> Ticket:
        seat, driver = self.seat, self._driver
        client = ControllerClient(self._wire, self.process.name)
        options = replace(seat.options, aggregator=seat.aggregator)
        request = JoinRequest(seat.job, seat.rank, seat.world_size, options)
        grant = await join(client, request, SimHost(seat), driver)
        try:
            place = self._place = self._take(grant, client)
        except BaseException:
            await leave(client, grant.credentials)
            raise
        self._loop.watch(place.worker, self._on_notice)
        place.member.start()
        self._driver.start("operations", self._follow)
        return grant.ticket

    def _take(self, grant: Grant[SimLink], client: ControllerClient) -> _Place:
        driver, ticket, manner = self._driver, grant.ticket, manner_of(self.seat, grant)
        worker = grant.link.open(self._network, self.process.name, grant, manner)
        voice = Voice(driver.flag(), driver.flag())
        latch = FailureLatch(ticket, worker, driver, voice=voice)
        remapping = Remapping(
            *(ticket, manner, worker, latch.works_by), aggregator=grant.aggregator
        )
        member = MemberCore(grant, client, worker, latch, remapping, self._shared, driver, voice)
        return _Place(worker, latch, manner, member)

    async def _leave(self) -> None:
        if self._place is not None:
            closed = SessionClosedError(f"{self}: the session was closed")
            await self._place.member.leave(lambda: self._close(closed))

    # -- what becomes of operations --

    def _on_notice(self, event: native.WorkerEvent, tensor: int) -> None:
        place = self._place
        if place is None or self.process.is_dead:
            return
        if (error := place.manner.window_error()) is not None:
            self.process.spawn(place.latch.fail(error))
        elif event is native.WorkerEvent.DONE:
            operation = self._operations.pop(tensor, None)
            if operation is not None and not operation.done.done():
                operation.done.set_result(operation.out)
        elif event is native.WorkerEvent.BREACH:
            self.breach = place.worker.breach
        else:  # the engine has failed
            self.process.spawn(self._look_why(place.latch))

    async def _look_why(self, latch: FailureLatch) -> None:
        if (error := await latch.told()) is not None:
            self._end_operations(error)

    async def _follow(self) -> None:
        """What the rules make fail."""
        if self._place is not None:
            await self._driver.until_set(self._place.latch.is_settled)
            if (error := self.error) is not None:
                self._end_operations(error)

    def _refusal(self) -> InaError | None:
        if self.process.is_dead and not self._closed:
            return CrashedError(f"{self} has crashed")
        if self._closed or (self.worker is None and self.error is None):
            return SessionClosedError(f"{self}: the session is not open")
        return self.error

    def _end_operations(self, error: InaError) -> None:
        self._has_ended = True
        pending, self._operations = self._operations, {}
        for operation in pending.values():
            _fail(operation.done, error)

    def _close(self, error: InaError) -> None:
        self._end_operations(error)
        if self._place is not None:
            self._loop.watch(self._place.worker, None)
            self._place.worker.crash()

    def _dies(self) -> None:
        aggregator = self.seat.aggregator
        if aggregator is not None:
            aggregator.close()
        self._close(CrashedError(f"{self} has crashed"))

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


def _fail(future: asyncio.Future[Array | None], error: InaError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # seen: nobody need wait for it
