"""A worker's membership in one job, over which it reduces arrays with the others."""

from __future__ import annotations

import logging
import os
import socket
import threading
import warnings
from collections.abc import Callable
from typing import Literal, overload

from ina.errors import InaError, InvalidInputError
from ina.extension.host import Operation, Transport, TransportOptions
from ina.host import arrays, at_exit, failure, metrics
from ina.host import threads as thread_counts
from ina.host.arrays import Array
from ina.host.client import GrpcWire, process_name
from ina.host.errors import (
    OperationTimeoutError,
    SessionClosedError,
    SessionFrozenError,
    TransportError,
)
from ina.host.frozen import Frozen, export_of
from ina.host.halts import HaltWatch
from ina.host.handle import Handle
from ina.host.in_flight import InFlight
from ina.host.joined import Joined
from ina.host.link import SwitchLink
from ina.host.manner import Manner
from ina.host.member.client import ControllerClient
from ina.host.member.core import MemberCore
from ina.host.member.join import Grant, JoinRequest, join, leave
from ina.host.member.latch import FailureLatch, Voice
from ina.host.options import USUAL, WorkerOptions
from ina.host.own_host import RealHost
from ina.host.remapping import Remapping
from ina.host.shared_results import SharedResults
from ina.host.stats import SessionStats
from ina.host.thread_driver import ThreadDriver
from ina.host.ticket import Ticket, check_world, tell_unused
from ina.host.udp import UdpLink
from ina.host.watcher import Watcher
from ina.protocol.collective import Collective, CollectiveKind

_log = logging.getLogger(__name__)


class Session:
    """One worker of one job. Thread-safe; all ranks must reduce the same arrays in the same order.

    A session that failed stays failed, with its first reason. Use it as a context manager or call
    :meth:`close`. It does not survive a fork: the child's copy only says so.
    """

    def __init__(
        self,
        ticket: Ticket,
        link: SwitchLink,
        options: WorkerOptions = USUAL,
        *,
        max_in_flight: int = 0,
        joined: Joined | None = None,
    ) -> None:
        """Take over `link`, the way to the switch. Prefer join() or direct().

        `max_in_flight`: packets; 0: no limit but W and the link's room. `joined`: its membership.
        """
        self._closed = True  # for __del__, should the following fail
        self._joined_with = ticket  # the first; by its epoch the controller knows the job
        self._link = link
        self._pid = os.getpid()
        self._watcher: Watcher | None = None
        self._lock = threading.Lock()
        self._recoverable = options.recoverable
        self._frozen: Frozen | None = None
        self._errors: dict[int, InaError] = {}  # of operations that failed by themselves
        self._inflight = InFlight()
        self._manner = Manner.of(options, ticket, link)
        name = f"{ticket.job_name}-{ticket.rank}"
        self._driver = driver = ThreadDriver(name) if joined is None else joined.driver
        halts = options.recoverable and options.on_failure is not None
        self._transport = self._open(ticket, options, max_in_flight, halts=halts)
        voice = None if joined is None else Voice(driver.flag(), driver.flag())
        self._latch = FailureLatch(
            *(ticket, self._transport, driver, options.on_failure),
            halts=halts,
            node=None if joined is None else joined.grant.node,
            is_shm=link.is_shm,
            voice=voice,
        )
        self._halt_watch: HaltWatch | None = None
        if halts:
            self._halt_watch = HaltWatch(
                self._transport, lambda: driver.run(self._latch.on_halt()), f"ina-halt-{name}"
            )
        self._client = None if joined is None else joined.client
        self._member: MemberCore | None = None
        if joined is not None and voice is not None:
            self._member = self._join(joined.grant, joined.client, voice)
        tell_unused(ticket)
        self._closed = False
        at_exit.close(self)
        metrics.SESSIONS.add(self)

    def _open(
        self, ticket: Ticket, options: WorkerOptions, max_in_flight: int, *, halts: bool
    ) -> Transport:
        """Raises TransportError."""
        tried = thread_counts.wanted(options.threads, options.local_workers)
        try:
            transport = self._link.transport(
                self._manner.config(ticket),
                TransportOptions(
                    max_in_flight=max_in_flight,
                    threads=tried,
                    halts=halts,
                    congestion=self._manner.choice(ticket),
                ),
            )
        except RuntimeError as error:
            raise TransportError(f"job {ticket.job_name!r} rank {ticket.rank}: {error}") from None
        stats, who = transport.stats(), failure.who(ticket)
        thread_counts.tell_less(who, options.threads, tried, stats, self._link.name)
        return transport

    def _join(self, grant: Grant[SwitchLink], client: ControllerClient, voice: Voice) -> MemberCore:
        remapping = Remapping(
            *(grant.ticket, self._manner, self._transport, self._latch.works_by),
            *(grant.options.node, grant.aggregator),
        )
        shared = SharedResults(failure.who(grant.ticket), self._link, self._transport)
        member = MemberCore(
            *(grant, client, self._transport, self._latch),
            *(remapping, shared, self._driver, voice),
        )
        member.start()
        return member

    @classmethod
    def direct(
        cls,
        ticket: Ticket,
        sock: socket.socket | None = None,
        options: WorkerOptions = USUAL,
        *,
        max_in_flight: int = 0,
    ) -> Session:
        """Start a session without a controller: whoever made the ticket programmed the switch.

        `sock` is a UDP socket connected to the switch, which the session then owns; by default a
        new one. Of `options` counts what is no question of a controller's. `max_in_flight`:
        packets; 0: no limit but W and the socket's buffer. Raises InvalidInputError,
        TransportError.
        """
        own = UdpLink.open(ticket.switch) if sock is None else UdpLink(sock)
        try:
            return cls(ticket, own, options, max_in_flight=max_in_flight)
        except BaseException:
            own.close()
            raise

    @classmethod
    def join(
        cls,
        controller: str,
        job: str,
        rank: int,
        world_size: int,
        options: WorkerOptions = USUAL,
    ) -> Session:
        """Join a job through the controller at "host:port" and wait until all workers are there.

        `controller`: several addresses, separated by commas, are tried in turn until one is the
        primary. While none answers this tries again; `options.timeout_s` bounds it all.

        Raises WorldSizeError, InvalidInputError, ControllerError, ControllerTimeoutError,
        TransportError, MetricsAddressError, MetricsListenError.
        """
        check_world(rank, world_size)
        metrics.start_from_environ()  # with INA_METRICS=host:port, for the whole process
        request = JoinRequest(job, rank, world_size, options)
        driver = ThreadDriver(f"{job}-{rank}")
        client = ControllerClient(GrpcWire(controller, driver, options.stop), process_name())
        grant: Grant[SwitchLink] | None = None
        try:
            grant = driver.run(join(client, request, RealHost(request), driver))
            joined = Joined(grant, client, driver)
            session = cls(
                grant.ticket, grant.link, options, max_in_flight=grant.window, joined=joined
            )
        except BaseException:
            if grant is not None:
                driver.run(leave(client, grant.credentials))
                grant.link.close()
            client.wire.close()
            raise
        _log.info("%s", joined.describe(session._transport.stats()))
        return session

    @property
    def ticket(self) -> Ticket:
        """By which it works now."""
        return self._latch.ticket

    @overload
    def all_reduce(
        self,
        array: Array,
        op: str = ...,
        *,
        out: Array | None = ...,
        async_op: Literal[False] = ...,
    ) -> Array: ...
    @overload
    def all_reduce(
        self, array: Array, op: str = ..., *, out: Array | None = ..., async_op: Literal[True]
    ) -> Handle[Array]: ...
    @overload
    def all_reduce(
        self, array: Array, op: str = ..., *, out: Array | None = ..., async_op: bool
    ) -> Array | Handle[Array]: ...
    def all_reduce(
        self, array: Array, op: str = "sum", *, out: Array | None = None, async_op: bool = False
    ) -> Array | Handle[Array]:
        """Sum (or average, op "avg") the workers' arrays; every rank gets the same bits.

        `array`: C-contiguous, any shape; float32, float16, ml_dtypes.bfloat16 or int32. `out`:
        where the result goes, same dtype and shape; `array` itself for in place; by default a new
        array. int32 sums wrap; docs/host.md has the error bound of floats. With `async_op` returns
        a Handle.

        Raises UnsupportedDtypeError, UnsupportedOpError, InvalidArrayError, OperationTimeoutError,
        SessionClosedError, JobFailedError: WorkerLostError, JobEvictedError, SwitchLostError,
        RanksDifferError, JobEndedError, CorruptedSumError, WindowError.
        """
        what = Collective(arrays.check_input(array), array.size, arrays.reduction(op))
        result = arrays.prepare_output(array, out)
        operation = self._submit(array.ctypes.data, result.ctypes.data, what, (array, result))
        handle = Handle(self, operation, result, array)
        return handle if async_op else handle.wait()

    @overload
    def reduce(
        self,
        array: Array,
        root: int,
        op: str = ...,
        *,
        out: Array | None = ...,
        async_op: Literal[False] = ...,
    ) -> Array | None: ...
    @overload
    def reduce(
        self,
        array: Array,
        root: int,
        op: str = ...,
        *,
        out: Array | None = ...,
        async_op: Literal[True],
    ) -> Handle[Array | None]: ...
    def reduce(
        self,
        array: Array,
        root: int,
        op: str = "sum",
        *,
        out: Array | None = None,
        async_op: bool = False,
    ) -> Array | Handle[Array | None] | None:
        """Sum (or average) the workers' arrays for rank `root` alone; the others get None.

        As :meth:`all_reduce`. `out` counts on the root. The network brings the sums to all ranks,
        as of an all-reduce: the others are spared the work of writing them.
        """
        if not 0 <= root < self.ticket.world_size:
            raise InvalidInputError(
                f"{failure.who(self.ticket)}: root {root}: want a rank,"
                f" 0..{self.ticket.world_size - 1}"
            )
        type_, kind = arrays.check_input(array), CollectiveKind.REDUCE
        what = Collective(type_, array.size, arrays.reduction(op), kind, root)
        result = arrays.prepare_output(array, out) if what.gets(self.ticket.rank) else None
        to = 0 if result is None else result.ctypes.data
        operation = self._submit(array.ctypes.data, to, what, (array, result))
        handle = Handle(self, operation, result, array)
        return handle if async_op else handle.wait()

    def submit(
        self, ptr_in: int, ptr_out: int, what: Collective, *, keep: object = None
    ) -> Handle[None]:
        """Begin a collective of what is at address `ptr_in`, whose result comes to `ptr_out`.

        Both may be equal, and must stay valid until the handle is done; `keep` is any object that
        sees to that. Returns at once. Raises ValueError: there is no such collective; and as
        `all_reduce` does.
        """
        return Handle(self, self._submit(ptr_in, ptr_out, what, keep), None, keep)

    def _submit(self, ptr_in: int, ptr_out: int, what: Collective, keep: object) -> Operation:
        self._check_process()
        if (error := self._manner.window_error()) is not None:
            self._driver.run(self._latch.fail(error))
        with self._lock:
            if self._closed:
                raise self._closed_error()
            if self._frozen is not None:
                raise SessionFrozenError(f"{failure.who(self.ticket)}: the session is frozen")
            operation = self._transport.submit(ptr_in, ptr_out, what)
            self._inflight.add(operation, keep)
        return operation

    def stats(self) -> SessionStats:
        """Return the counts so far; those of an operation are in once it is done."""
        self._check_process()
        return SessionStats.of(self._transport.stats())

    @property
    def path(self) -> str:
        """How the switch is reached: "shared memory" or "UDP host:port"."""
        return self._link.name

    def fail(self, error: InaError) -> None:
        """End all pending and later operations with `error`, unless they have failed before."""
        self._check_process()
        self._driver.run(self._latch.fail(error))

    def freeze(self) -> Frozen:
        """Stop sending and accepting for good, so that operations can be finished by other means.

        What is pending stays pending until it is completed through what this returns (or the
        session is closed); submitting raises SessionFrozenError. From now on the job's end does not
        matter to the session, though it keeps its membership. Again returns the same. Raises
        InvalidInputError unless the session is recoverable, SessionClosedError, and the session's
        own error when it has failed already.
        """
        self._check_process()
        if not self._recoverable:
            raise InvalidInputError(f"{failure.who(self.ticket)}: recoverable was not asked for")
        with self._lock:
            if self._closed:
                raise self._closed_error()
            if self._frozen is None:
                self._driver.run(self._latch.freeze())
                transport = self._transport
                submitted = transport.stats().worker.tensors_submitted
                export = export_of(self._joined_with, submitted, transport)
                self._frozen = Frozen(transport, export, self._errors)
            return self._frozen

    def error(self) -> InaError | None:
        """Return why the session's operations fail, or None: they do not."""
        return self._driver.run(self._latch.error())

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, leave the job and close the link. Pending operations end with SessionClosedError.

        Idempotent. In a forked child it closes only the child's copy of the link.
        """
        if os.getpid() != self._pid:
            self._closed = True
            self._transport.close()
            self._link.close()
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
        at_exit.closed(self)
        metrics.SESSIONS.remove(self)
        if self._member is not None and self._client is not None:
            is_frozen = self._frozen is not None
            self._driver.run(self._member.leave(self._end_operations, is_frozen=is_frozen))
            self._client.wire.close()
        else:
            self._end_operations()
        self._link.close()

    def _end_operations(self) -> None:
        self._transport.close()
        if self._watcher is not None:
            self._watcher.close()
        self._latch.close(self._manner.window_error())
        if self._halt_watch is not None:
            self._halt_watch.close()
        self._inflight.clear()

    def __del__(self) -> None:
        if self._closed or os.getpid() != self._pid:
            return
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
        self.close()

    def __repr__(self) -> str:
        """Name the job and the rank."""
        ticket = self.ticket
        return f"<ina.host.Session job={ticket.job_name!r} rank={ticket.rank}/{ticket.world_size}>"

    # For Handle.

    def _watch(self, operation: Operation, function: Callable[[], object]) -> None:
        self._check_process()
        with self._lock:
            if self._watcher is None and not self._closed:  # after that, all have ended
                name = f"ina-done-{self.ticket.job_name}-{self.ticket.rank}"
                self._watcher = Watcher(self._transport, name)
            watcher = self._watcher
        function() if watcher is None else watcher.add(operation, function)

    def _forget(self, operation_id: int) -> None:
        with self._lock:
            self._inflight.forget(operation_id)

    def _failure_error(self, operation_id: int) -> InaError:
        error = self._errors.get(operation_id) or self._driver.run(self._latch.told())
        assert error is not None, "an operation failed without a reason"
        return error

    def _wait_error(self, timeout_s: float) -> OperationTimeoutError:
        return self._latch.wait_error(timeout_s)

    def _closed_error(self) -> SessionClosedError:
        return SessionClosedError(f"{failure.who(self.ticket)}: the session is closed")

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise SessionClosedError(
                f"{failure.who(self.ticket)}: the session belongs to process {self._pid} and "
                "cannot be used after a fork"
            )
