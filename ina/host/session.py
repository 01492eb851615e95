"""A worker's membership in one job, over which it reduces arrays with the others."""

from __future__ import annotations

import logging
import os
import socket
import threading
import warnings
from collections.abc import Callable
from typing import Literal, overload

from ina.congestion import Congestion
from ina.errors import InaError, InvalidInputError
from ina.extension.host import Operation, TransportOptions
from ina.host import arrays, at_exit, failure, metrics
from ina.host import threads as thread_counts
from ina.host.aggregator import OwnAggregator
from ina.host.arrays import Array
from ina.host.calls import Credentials
from ina.host.client import ControllerClient
from ina.host.errors import (
    ControllerError,
    InvalidTicketError,
    MembershipEndedError,
    OperationTimeoutError,
    SessionClosedError,
    SessionFrozenError,
    TransportError,
)
from ina.host.failure_latch import FailureLatch, OnFailure
from ina.host.frozen import Frozen, export_of
from ina.host.handle import Handle
from ina.host.in_flight import InFlight
from ina.host.join import Grant, JoinRequest, describe_grant, join, leave
from ina.host.link import SwitchLink, TransportName, check_transport
from ina.host.manner import Manner
from ina.host.membership import Membership
from ina.host.node import NodeOfHost
from ina.host.progress import ProgressReporter
from ina.host.remapping import Remapping
from ina.host.stats import SessionStats
from ina.host.stop import Stop
from ina.host.ticket import Ticket, check_world, tell_unused
from ina.host.udp import UdpLink
from ina.host.watcher import Watcher
from ina.host.wishes import NO_WISHES, Wishes
from ina.protocol.collective import Collective
from ina.protocol.verify import Verify
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

DEFAULT_OP_TIMEOUT_S = 30.0
MAX_OP_TIMEOUT_S = 1e9  # 31 years; int64 nanoseconds on top of a clock end at nine times that


class Session:
    """One worker of one job. Thread-safe; all ranks must reduce the same arrays in the same order.

    A session that failed stays failed, with its first reason. Use it as a context manager or call
    :meth:`close`. It does not survive a fork: the child's copy only says so.
    """

    def __init__(
        self,
        ticket: Ticket,
        link: SwitchLink,
        *,
        op_timeout_s: float = DEFAULT_OP_TIMEOUT_S,
        max_in_flight: int = 0,
        congestion: Congestion | None = None,
        recoverable: bool = False,
        on_failure: OnFailure | None = None,
        threads: int = 0,
        local_workers: int = 1,
    ) -> None:
        """Take over `link`, the way to the switch. Prefer join() or direct().

        `max_in_flight`: packets; 0: no limit but W and the link's room. The others: see join().
        """
        self._closed = True  # for __del__, should the following fail
        self.ticket = ticket
        self._joined_with = ticket  # the first; by its epoch the controller knows the job
        self._link = link
        self._pid = os.getpid()
        self._client: ControllerClient | None = None
        self._credentials: Credentials | None = None
        self._membership: Membership | None = None
        self._watcher: Watcher | None = None
        self._lock = threading.Lock()
        self._recoverable = recoverable
        self._frozen: Frozen | None = None
        self._errors: dict[int, InaError] = {}  # of operations that failed by themselves
        self._inflight = InFlight()
        _check_op_timeout(op_timeout_s)
        thread_counts.check_threads("threads", threads)
        self._manner = Manner(
            *(int(op_timeout_s * 1e9), link.rto, recoverable, congestion),
            leads_to=link.leads_to or ticket.switch,
            framing=link.framing,
        )
        try:
            tried = thread_counts.wanted(threads, local_workers)
            options = TransportOptions(
                max_in_flight=max_in_flight,
                threads=tried,
                halts=recoverable and on_failure is not None,
                congestion=self._manner.choice(ticket),
            )
            self._transport = link.transport(self._manner.config(ticket), options)
        except RuntimeError as error:
            raise TransportError(f"job {ticket.job_name!r} rank {ticket.rank}: {error}") from None
        stats = self._transport.stats()
        thread_counts.tell_less(failure.who(ticket), threads, tried, stats, link.name)
        self._latch = FailureLatch(ticket, self._transport, on_failure, options.halts)
        tell_unused(ticket)
        self._closed = False
        at_exit.close(self)
        metrics.SESSIONS.add(self)

    @classmethod
    def direct(
        cls,
        ticket: Ticket,
        sock: socket.socket | None = None,
        *,
        op_timeout_s: float = DEFAULT_OP_TIMEOUT_S,
        max_in_flight: int = 0,
        congestion: Congestion | None = None,
        recoverable: bool = False,
        on_failure: OnFailure | None = None,
        threads: int = 0,
        local_workers: int = 1,
    ) -> Session:
        """Start a session without a controller: whoever made the ticket programmed the switch.

        `sock` is a UDP socket connected to the switch, which the session then owns; by default a
        new one. The others: see join(). Raises InvalidInputError, TransportError.
        """
        own = UdpLink.open(*ticket.switch) if sock is None else UdpLink(sock)
        try:
            return cls(
                ticket,
                own,
                op_timeout_s=op_timeout_s,
                max_in_flight=max_in_flight,
                congestion=congestion,
                recoverable=recoverable,
                on_failure=on_failure,
                threads=threads,
                local_workers=local_workers,
            )
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
        *,
        timeout_s: float = 30.0,
        slots: int = 0,
        host: str | None = None,
        token: str = "",
        tenant: str = "",
        priority: int = 0,
        transport: TransportName = "auto",
        congestion: Congestion | None = None,
        dscp: int | None = None,
        verify: Verify | None = None,
        op_timeout_s: float = DEFAULT_OP_TIMEOUT_S,
        controller_with_rank: int | None = None,
        recoverable: bool = False,
        on_failure: OnFailure | None = None,
        threads: int = 0,
        local_workers: int = 1,
        node: NodeOfHost | None = None,
        wishes: Wishes = NO_WISHES,
        mode: str = "",
        aggregator: OwnAggregator | None = None,
        stop: Stop | None = None,
    ) -> Session:
        """Join a job through the controller at "host:port" and wait until all workers are there.

        `controller`: several addresses, separated by commas, are tried in turn until one is the
        primary. While none answers this tries again; `timeout_s` bounds it all. `slots`: how many
        to ask for, both versions; 0: the controller's default. `host`: this worker's IPv4 address
        towards the switch, by default the one the routing table gives. `token`: the job's join
        token; the first worker's is asked of all others. `tenant`, `priority`: whose job it is and
        how important (higher wins), as the controller's configuration allows. `transport`: "udp";
        "shm", shared memory with a switch on this host; or "auto", shared memory where the switch
        offers it, else UDP. `congestion`: how many packets are in flight, by default as the
        controller's configuration has it. `dscp`: of its packets, 0 to 63; None: its tenant's.
        Workers of one job may differ in all three. `verify`: of the sums, "off", "accidents" or
        "keyed", the same for all; None: as others ask, or as is usual.

        `op_timeout_s`: a reduction fails when no chunk of it completes for so long.
        `controller_with_rank`: the controller lives in that rank's process, so when it has been
        silent for a lease, that rank is dead. `recoverable`: keep what freeze() needs, one packet's
        values for each lane. `on_failure(error)` is called once, from a thread of the session, when
        the job cannot go on; if it returns True (having frozen the session, for instance), nothing
        fails. Of corrupted sums it is told where the session is recoverable. `threads`: that drive
        this worker's packets, 1, 2, 4 or 8, fewer where fewer packets may be in flight, and one
        over shared memory; 0: one for each four cores, 1 to 4, where `local_workers` workers of
        this host share the cores. Workers of one job may differ in it. `node`: this rank's part in
        its host's node, which it sends to unless a switch is on this host. `wishes`: of the job,
        for memory policies, and how long it waits for slots, beside `timeout_s`. `mode`: "pool",
        slots of its own; "shared", slots that jobs share; empty: as others ask, or as the
        controller's configuration has it. `aggregator`: what rank 0 runs in mode "shared" where
        that has none. `stop`: ends this from another thread (SessionClosedError).

        Raises WorldSizeError, InvalidInputError, ControllerError, ControllerTimeoutError,
        TransportError, MetricsAddressError, MetricsListenError.
        """
        check_world(rank, world_size)
        _check_op_timeout(op_timeout_s)
        check_transport("transport", transport)
        thread_counts.check_threads("threads", threads)
        metrics.start_from_environ()  # with INA_METRICS=host:port, for the whole process
        request = JoinRequest(
            job=job,
            rank=rank,
            world_size=world_size,
            timeout_s=timeout_s,
            slots=slots,
            host=host,
            token=token,
            tenant=tenant,
            priority=priority,
            transport=transport,
            dscp=dscp,
            verify=verify,
            node=node,
            wishes=wishes,
            mode=mode,
            aggregator=aggregator,
        )
        client = ControllerClient(controller, stop=stop)
        grant: Grant | None = None
        try:
            grant = join(client, request)
            session = cls(
                grant.ticket,
                grant.link,
                op_timeout_s=op_timeout_s,
                max_in_flight=grant.window,
                congestion=congestion,
                recoverable=recoverable,
                on_failure=on_failure,
                threads=threads,
                local_workers=local_workers,
            )
        except BaseException:
            if grant is not None:
                leave(client, grant)
            client.close()
            raise
        _log.info("%s", describe_grant(grant, session._transport.stats(), client.address))
        session._client, session._credentials = client, grant.credentials
        session._latch.node = grant.node
        if grant.heartbeat_s > 0:
            own = aggregator if grant.has_aggregator else None
            remapping = Remapping(
                *(grant.ticket, session._manner, session._transport, session._works_by, node),
                aggregator=own,
            )
            session._membership = Membership(
                *(grant, session._transport, client, session._latch, remapping),
                *(controller_with_rank, node, own),
            )
            session._latch.asks(session._membership.speak)
        return session

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
            self._latch.fail(error)
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
        self._latch.fail(error)

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
                self._latch.freeze()
                transport = self._transport
                submitted = transport.stats().worker.tensors_submitted
                export = export_of(self._joined_with, submitted, transport)
                self._frozen = Frozen(transport, export, self._errors)
            return self._frozen

    def error(self) -> InaError | None:
        """Return why the session's operations fail, or None: they do not."""
        return self._latch.error()

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
        last = None
        if self._membership is not None:
            if self._frozen is None and self._latch.error() is None:
                self._membership.wait_for_others()
            self._membership.stop()
            if self._frozen is None:  # else the others do not need it for what they have begun
                last = ProgressReporter(self._transport).report(whole=True)
        self._transport.close()
        if self._watcher is not None:
            self._watcher.close()
        self._latch.close(self._manner.window_error())
        self._inflight.clear()
        self._leave(last)
        self._link.close()

    def _leave(self, last: pb2.Progress | None) -> None:
        if self._client is None or self._credentials is None:
            return  # a direct session
        try:
            if self._membership is None or not self._membership.controller_is_dead:
                self._client.leave(self._credentials, last, self._latch.settled())
        except MembershipEndedError as error:
            _log.debug("%s", error)  # it has ended already
        except ControllerError as error:
            _log.warning("%s", error)
        if self._membership is not None:
            self._membership.close()
        self._client.close()

    def __del__(self) -> None:
        if self._closed or os.getpid() != self._pid:
            return
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
        self.close()

    def __repr__(self) -> str:
        """Name the job and the rank."""
        ticket = self.ticket
        return f"<ina.host.Session job={ticket.job_name!r} rank={ticket.rank}/{ticket.world_size}>"

    def _works_by(self, ticket: Ticket) -> None:
        self.ticket = self._latch.ticket = ticket

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
        error = self._errors.get(operation_id) or self._latch.told()
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


def _check_op_timeout(op_timeout_s: float) -> None:
    if not 0 < op_timeout_s <= MAX_OP_TIMEOUT_S:
        raise InvalidTicketError(
            f"op_timeout_s is {op_timeout_s:g}, must be above 0 and at most {MAX_OP_TIMEOUT_S:g}"
        )
