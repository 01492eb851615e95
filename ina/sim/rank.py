"""One worker's process in the virtual network: it joins a job, reduces arrays, leaves or dies.

What :class:`ina.host.Session` is in threads, this is in tasks: the rules of a membership are the
same, and so is the native core; where a Session blocks, one awaits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ina.errors import InaError
from ina.extension import sim as native
from ina.extension.host import Operation, OperationState
from ina.host.arrays import Array, check_input, prepare_output, reduction
from ina.host.errors import SessionClosedError
from ina.host.manner import Manner
from ina.host.member.client import ControllerClient
from ina.host.member.join import JoinRequest
from ina.host.member.session import Joined, SessionCore, join_by
from ina.host.sparse import BlockSums
from ina.host.ticket import Ticket
from ina.host.turns import Turns
from ina.protocol.coding import CODINGS
from ina.protocol.collective import Collective, CollectiveKind
from ina.protocol.spec import ValueType
from ina.sim.awaited import Awaited, Found, as_future, fail
from ina.sim.errors import CrashedError
from ina.sim.links import SimHost, SimLink, SimShared, manner_of
from ina.sim.loop import VirtualLoop
from ina.sim.process import Process
from ina.sim.scenario import TensorSpec
from ina.sim.seat import Seat
from ina.sim.task_driver import TaskDriver
from ina.sim.wire import SimWire

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Pending:
    operation: Operation
    out: Array | None
    done: Found


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
        self._core: SessionCore[native.Worker] | None = None
        self._operations: dict[int, _Pending] = {}
        self._turns = Turns()
        self._sparse = BlockSums(self._turns, self._start, seat.world_size)
        self._has_ended = False  # nothing of it goes out any more
        self._closed = False
        process.at_death(self._dies)

    @property
    def ticket(self) -> Ticket | None:
        """Once it has joined: by which it works."""
        return None if self._core is None else self._core.ticket

    @property
    def worker(self) -> native.Worker | None:
        """The native one, while it is in the job and has not failed."""
        return None if self._core is None or self._has_ended else self._core.transport

    @property
    def manner(self) -> Manner | None:
        """How it behaves, once it has joined."""
        return None if self._core is None else self._core.manner

    @property
    def error(self) -> InaError | None:
        """Why the job cannot go on."""
        return None if self._core is None else self._core.latch.settled()

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
        self,
        array: Array,
        op: str = "sum",
        out: Array | None = None,
        root: int | None = None,
        wire: str = "32",
    ) -> Found:
        """Begins an all-reduce; several may be under way. ``array`` must stay as it is meanwhile.

        ``root``: the rank that alone gets the result; the others get None. ``wire``: one of
        :data:`ina.protocol.coding.CODINGS`.

        The future raises JobFailedError and what derives from it, OperationTimeoutError,
        SessionClosedError, :class:`CrashedError`.
        """
        what = Collective(check_input(array), array.size, reduction(op))
        if root is not None:
            what = what._replace(kind=CollectiveKind.REDUCE, root=root)
        what = CODINGS[wire].of(what)
        out = prepare_output(array, out) if what.gets(self.seat.rank) else None
        return as_future(self._turns.submit(lambda: self._start(array, out, what)), self._loop)

    def submit_of(self, spec: TensorSpec, array: Array) -> Found:
        """Begins what a scenario says, as :meth:`submit`; ``array``: what this rank reads from.

        Who gets nothing gets None, but the root of a broadcast what it has.
        """
        ranks, root, out = self.seat.world_size, spec.root or 0, array
        match spec.kind:
            case "reduce_scatter":
                out = np.empty(array.size // ranks, array.dtype)
                kind = CollectiveKind.REDUCE_SCATTER
                what = Collective(check_input(array), out.size, reduction(spec.op), kind)
                what = CODINGS[spec.wire].of(what)
            case "all_gather":
                out = np.empty(ranks * array.size, array.dtype)
                what = Collective(ValueType.BYTES, array.nbytes, kind=CollectiveKind.ALL_GATHER)
            case "broadcast":
                out = array if self.seat.rank == root else np.empty_like(array)
                kind = CollectiveKind.BROADCAST
                what = Collective(ValueType.BYTES, array.nbytes, kind=kind, root=root)
            case _:
                what = Collective(ValueType.INT32, 0, kind=CollectiveKind.BARRIER)
        return as_future(self._turns.submit(lambda: self._start(array, out, what)), self._loop)

    def submit_blocks(
        self, array: Array, block_elems: int, op: str = "sum", wire: str = "32"
    ) -> Found:
        """Begins a sparse sum, as :meth:`ina.host.Session.all_reduce_blocks`; as :meth:`submit`."""
        parts: list[tuple[Array, Array | None]] = [(array, None)]
        (begun,) = self._sparse.all_reduce(parts, block_elems, reduction(op), CODINGS[wire])
        return as_future(begun, self._loop)

    def _start(self, array: Array, out: Array | None, what: Collective) -> Awaited:
        """Its turn has come."""
        done: Found = self._loop.create_future()
        try:
            operation = self._begin(array, out, what)
        except InaError as error:
            fail(done, error)
        else:
            self._operations[operation.id] = _Pending(operation, out, done)
        return Awaited(done)

    def _begin(self, array: Array, out: Array | None, what: Collective) -> Operation:
        if self.process.is_dead and not self._closed:
            raise CrashedError(f"{self} has crashed")
        if self._core is None:
            raise SessionClosedError(f"{self}: the session is not open")
        to = 0 if out is None else out.ctypes.data
        operation = self._core.submit(array.ctypes.data, to, what, (array, out))
        self._driver.moved()
        if operation.state != OperationState.PENDING:
            self.process.spawn(self._look_why(self._core))
        return operation

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
        if self.worker is not None and self._core is not None and self._core.member is not None:
            self.worker.leave_group()
            self._shared.missing = True
            self._core.member.speak()

    async def _join(self) -> Ticket:
        seat, driver = self.seat, self._driver
        client = ControllerClient(self._wire, self.process.name)
        options = replace(seat.options, aggregator=seat.aggregator)
        request = JoinRequest(seat.job, seat.rank, seat.world_size, options)
        core = self._core = await join_by(client, request, SimHost(seat), driver, self._open)
        driver.start("operations", self._follow)
        return core.ticket

    def _open(self, joined: Joined[SimLink]) -> SessionCore[native.Worker]:
        grant = joined.grant
        manner = manner_of(self.seat, grant)
        worker = grant.link.open(self._network, self.process.name, grant, manner)
        self._loop.watch(worker, self._on_notice)
        return SessionCore(
            *(worker, manner, self._driver, grant.options, grant.ticket, joined, self._shared)
        )

    async def _leave(self) -> None:
        core = self._core
        if core is not None and core.closes():
            await core.leave(lambda: self._end(core.closed_error()))

    # -- what becomes of operations --

    def _on_notice(self, event: native.WorkerEvent, tensor: int) -> None:
        core = self._core
        if core is None or self.process.is_dead:
            return
        self._driver.moved()
        if core.manner.window_error() is not None:
            self.process.spawn(core.look_at_window())
        if event is native.WorkerEvent.DONE:
            pending = self._operations.pop(tensor, None)
            if pending is not None and not pending.done.done():
                core.forget(pending.operation)
                pending.done.set_result(pending.out)
        elif event is native.WorkerEvent.BREACH:
            self.breach = core.transport.breach
        else:  # the engine has failed
            self.process.spawn(self._look_why(core))

    async def _look_why(self, core: SessionCore[native.Worker]) -> None:
        """Each operation that has failed says why."""
        for number, pending in list(self._operations.items()):
            if (error := await core.error_of(pending.operation)) is not None:
                self._has_ended = True
                self._operations.pop(number, None)
                fail(pending.done, error)

    async def _follow(self) -> None:
        """What the rules make fail."""
        if (core := self._core) is not None:
            await self._driver.until_set(core.latch.is_settled)
            await self._look_why(core)

    def _end(self, error: InaError) -> None:
        """Nothing of it goes out any more."""
        self._has_ended = True
        self._turns.end(lambda: error)
        pending, self._operations = self._operations, {}
        for one in pending.values():
            fail(one.done, error)
        if self._core is not None:
            self._loop.watch(self._core.transport, None)
            self._core.transport.crash()

    def _dies(self) -> None:
        aggregator = self.seat.aggregator
        if aggregator is not None:
            aggregator.close()
        self._end(CrashedError(f"{self} has crashed"))

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
