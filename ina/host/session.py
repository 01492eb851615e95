"""A worker's membership in one job, over which it reduces arrays with the others."""

from __future__ import annotations

import logging
import os
import socket
import threading
import warnings
import weakref
from collections.abc import Callable

from ina.errors import InaError
from ina.extension.host import Operation, OperationState, Transport, TransportOptions
from ina.host import at_exit, failure, metrics
from ina.host import threads as thread_counts
from ina.host.arrays import Array
from ina.host.client import GrpcWire, process_name
from ina.host.deferred import DeferredHandle
from ina.host.errors import (
    HeadroomError,
    OperationTimeoutError,
    SessionClosedError,
    TransportError,
)
from ina.host.first_line import describe
from ina.host.frozen import Frozen
from ina.host.halts import HaltWatch
from ina.host.handle import Handle
from ina.host.link import SwitchLink
from ina.host.manner import Manner
from ina.host.member.client import ControllerClient
from ina.host.member.join import JoinRequest
from ina.host.member.session import Joined, SessionCore, halts, join_by
from ina.host.operations import Operations, T
from ina.host.options import USUAL, WorkerOptions
from ina.host.own_host import RealHost
from ina.host.refused import check_options, check_packed
from ina.host.shared_results import SharedResults
from ina.host.sparse import BlockSums
from ina.host.stats import SessionStats
from ina.host.thread_driver import ThreadDriver
from ina.host.ticket import Ticket, check_world, tell_unused
from ina.host.turns import Later, Turns
from ina.host.udp import UdpLink
from ina.host.watcher import Watcher
from ina.protocol.coding import MOST_WORKERS, checked_coding, too_narrow
from ina.protocol.collective import Collective

_log = logging.getLogger(__name__)


class Session(Operations):
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
        joined: Joined[SwitchLink] | None = None,
        driver: ThreadDriver | None = None,
    ) -> None:
        """Take over `link`, the way to the switch. Prefer join() or direct().

        `max_in_flight`: packets; 0: no limit but W and the link's room. `joined`: its membership,
        by the rules of `driver`.
        """
        self._closed = True  # for __del__, should the following fail
        check_options(ticket, options)
        self._link, self._pid = link, os.getpid()
        self._watcher: Watcher | None = None
        self._lock = threading.Lock()
        self._wire = None if joined is None else joined.client.wire
        self._coding = options.wire
        self._packet_values = ticket.values_per_packet  # the same on all ranks, later too
        self._turns = Turns()
        this = weakref.proxy(self)  # or __del__ would wait for the collector
        self._sparse = BlockSums(self._turns, lambda *of: this._begin(*of), ticket.world_size)
        name = f"{ticket.job_name}-{ticket.rank}"
        self._driver = driver = driver or ThreadDriver(name)
        manner = Manner.of(options, ticket, link)
        self._transport = transport = self._open(ticket, options, manner, max_in_flight)
        shared = SharedResults(failure.who(ticket), link, transport)
        self._core = SessionCore(transport, manner, driver, options, ticket, joined, shared)
        self._halt_watch: HaltWatch | None = None
        if halts(options):
            latch = self._core.latch
            self._halt_watch = HaltWatch(
                transport, lambda: driver.run(latch.on_halt()), f"ina-halt-{name}"
            )
        tell_unused(ticket)
        self._closed = False
        at_exit.close(self)
        metrics.SESSIONS.add(self)

    def _open(
        self, ticket: Ticket, options: WorkerOptions, manner: Manner, max_in_flight: int
    ) -> Transport:
        """Raises TransportError."""
        tried = thread_counts.wanted(options.threads, options.local_workers)
        try:
            transport = self._link.transport(
                manner.config(ticket),
                TransportOptions(
                    max_in_flight=max_in_flight,
                    threads=tried,
                    halts=halts(options),
                    congestion=manner.choice(ticket),
                ),
            )
        except RuntimeError as error:
            raise TransportError(f"job {ticket.job_name!r} rank {ticket.rank}: {error}") from None
        stats, who = transport.stats(), failure.who(ticket)
        thread_counts.tell_less(who, options.threads, tried, stats, self._link.name)
        return transport

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

        Raises WorldSizeError, InvalidInputError, HeadroomError, ControllerError,
        ControllerTimeoutError, TransportError, MetricsAddressError, MetricsListenError.
        """
        check_world(rank, world_size)
        bits = checked_coding("wire", options.wire).bits
        if world_size > MOST_WORKERS[bits]:
            raise HeadroomError(f"job {job!r} rank {rank}: {too_narrow(bits, world_size)}")
        metrics.start_from_environ()  # with INA_METRICS=host:port, for the whole process
        request = JoinRequest(job, rank, world_size, options)
        driver = ThreadDriver(f"{job}-{rank}")
        client = ControllerClient(GrpcWire(controller, driver, options.stop), process_name())

        def open_(joined: Joined[SwitchLink]) -> Session:
            grant = joined.grant
            return cls(
                *(grant.ticket, grant.link, options),
                max_in_flight=grant.window,
                joined=joined,
                driver=driver,
            )

        try:
            session = driver.run(join_by(client, request, RealHost(request), driver, open_))
        except BaseException:
            client.wire.close()
            raise
        _log.info("%s", describe(session.ticket, session._link, client, session._transport.stats()))
        return session

    @property
    def ticket(self) -> Ticket:
        """By which it works now."""
        return self._core.ticket

    def _in_turn(
        self, ptr_in: int, ptr_out: int, what: Collective, keep: object, result: T
    ) -> Handle[T]:
        """Of what is submitted, now or behind sparse sums."""
        sum_ = self._turns.submit(
            lambda: Handle(self, self._submit(ptr_in, ptr_out, what, keep), result, keep)
        )
        if isinstance(sum_, Handle):
            return sum_
        assert isinstance(sum_, Later)
        return DeferredHandle(sum_, keep, self._wait_error)

    def _begin(self, source: Array, target: Array, what: Collective) -> Handle[None]:
        """Of sparse sums, whose turn it is."""
        keep = (source, target)
        operation = self._submit(source.ctypes.data, target.ctypes.data, what, keep)
        return Handle(self, operation, None, keep)

    def count_on_from(self, operations: int) -> None:
        """The job has done so many elsewhere before this session's first, which is not begun yet.

        The same on all ranks. What is rounded by chance then has the bits that it would have in a
        session that had done them.
        """
        self._transport.count_on_from(operations)

    def _submit(self, ptr_in: int, ptr_out: int, what: Collective, keep: object) -> Operation:
        self._check_process()
        check_packed(self.ticket, what)
        if self._core.manner.window_error() is not None:
            self._driver.run(self._core.look_at_window())
        with self._lock:
            return self._core.submit(ptr_in, ptr_out, what, keep)

    def stats(self) -> SessionStats:
        """Return the counts so far; those of an operation are in once it is done."""
        self._check_process()
        return SessionStats.of(self._transport.stats(), self._sparse.counts)

    @property
    def path(self) -> str:
        """How the switch is reached: "shared memory" or "UDP host:port"."""
        return self._link.name

    def fail(self, error: InaError) -> None:
        """End all pending and later operations with `error`, unless they have failed before."""
        self._check_process()
        self._driver.run(self._core.latch.fail(error))

    def freeze(self) -> Frozen:
        """Stop sending and accepting for good, so that operations can be finished by other means.

        What is pending stays pending until it is completed through what this returns (or the
        session is closed); submitting raises SessionFrozenError. From now on the job's end does not
        matter to the session, though it keeps its membership. Again returns the same. Raises
        InvalidInputError unless the session is recoverable, SessionClosedError, and the session's
        own error when it has failed already.
        """
        self._check_process()
        with self._lock:
            return self._driver.run(self._core.freeze())

    def error(self) -> InaError | None:
        """Return why the session's operations fail, or None: they do not."""
        return self._driver.run(self._core.latch.error())

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
        self._turns.end(self._core.closed_error)  # before, for what begins them takes the lock
        with self._lock:
            self._closed = True
            if not self._core.closes():
                return
        at_exit.closed(self)
        metrics.SESSIONS.remove(self)
        self._driver.run(self._core.leave(self._stop))
        if self._wire is not None:
            self._wire.close()
        self._link.close()

    def _stop(self) -> None:
        self._transport.close()
        if self._watcher is not None:
            self._watcher.close()
        if self._halt_watch is not None:
            self._halt_watch.close()

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
            if self._watcher is None and not self._core.is_closed:  # after that, all have ended
                name = f"ina-done-{self.ticket.job_name}-{self.ticket.rank}"
                self._watcher = Watcher(self._transport, name)
            watcher = self._watcher
        function() if watcher is None else watcher.add(operation, function)

    def _forget(self, operation: Operation) -> None:
        with self._lock:
            self._core.forget(operation)

    def _error_of(self, operation: Operation) -> InaError | None:
        if operation.state == OperationState.FAILED:
            return self._driver.run(self._core.error_of(operation))
        return self._core.closed_error() if operation.state == OperationState.CLOSED else None

    def _wait_error(self, timeout_s: float) -> OperationTimeoutError:
        return self._core.latch.wait_error(timeout_s)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise SessionClosedError(
                f"{failure.who(self.ticket)}: the session belongs to process {self._pid} and "
                "cannot be used after a fork"
            )
