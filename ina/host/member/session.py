"""A worker's session from its place in a job to its end, whatever drives it and sends for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ina.errors import InaError, InvalidInputError
from ina.extension.host import Operation, OperationState, TransportEngine
from ina.host.errors import HeadroomError, SessionClosedError, SessionFrozenError
from ina.host.failure import who
from ina.host.frozen import Frozen, export_of
from ina.host.in_flight import InFlight
from ina.host.manner import Manner
from ina.host.member.beat import Shared
from ina.host.member.client import ControllerClient
from ina.host.member.core import MemberCore
from ina.host.member.driver import Driver
from ina.host.member.join import Grant, JoinRequest, L, L_co, OwnHost, join, leave
from ina.host.member.join_link import JoinLink
from ina.host.member.latch import FailureLatch, Voice
from ina.host.options import WorkerOptions
from ina.host.remapping import Remapping
from ina.host.ticket import Ticket
from ina.protocol.coding import MOST_WORKERS, too_narrow, values_per_word
from ina.protocol.collective import Collective

OWED_S = 30.0
"""A worker that leaves waits so long, at most, until its neighbour in a ring has the last sums: as
long as that waits for them."""
_LOOK_S = 0.005

E = TypeVar("E", bound=TransportEngine)
S = TypeVar("S")


@dataclass(frozen=True)
class Joined(Generic[L_co]):
    """A place in a job, and whom a session keeps it by."""

    grant: Grant[L_co]
    client: ControllerClient


async def join_by(
    client: ControllerClient, request: JoinRequest, own_host: OwnHost[L], driver: Driver,
    open_: Callable[[Joined[L]], S],
) -> S:  # fmt: skip
    """What `open_` makes of the place that the controller grants; else the place is given back.

    Raises what join() and `open_` do.
    """
    joined = Joined(await join(client, request, own_host, driver), client)
    try:
        return await driver.outside(lambda: open_(joined))
    except BaseException:
        await leave(client, joined.grant.credentials)
        joined.grant.link.close()
        raise


class SessionCore(Generic[E]):
    """One worker's. Of submit(), freeze() and closes() one at a time."""

    def __init__(
        self, transport: E, manner: Manner, driver: Driver, options: WorkerOptions, ticket: Ticket,
        joined: Joined[JoinLink] | None = None, shared: Shared | None = None,
    ) -> None:  # fmt: skip
        """`ticket`: the first. `joined`: None: there is no controller; its membership begins."""
        self._joined_with = ticket  # the first; by its epoch the controller knows the job
        self.transport, self.manner, self._recoverable = transport, manner, options.recoverable
        self._owed_s = min(OWED_S, options.op_timeout_s)  # no neighbour waits for longer
        self._driver = driver
        self._frozen: Frozen | None = None
        self._errors: dict[int, InaError] = {}  # of operations that failed by themselves
        self._inflight = InFlight()
        self.is_closed = False
        voice = None if joined is None else Voice(driver.flag(), driver.flag())
        self.latch = FailureLatch(
            *(ticket, transport, driver, options.on_failure),
            halts=halts(options),
            node=None if joined is None else joined.grant.node,
            is_shm=joined is not None and joined.grant.link.is_shm,
            voice=voice,
        )
        self.member: MemberCore | None = None
        if joined is not None and voice is not None and shared is not None:
            grant = joined.grant
            remapping = Remapping(
                *(ticket, manner, transport, self.latch.works_by, options.node, grant.aggregator)
            )
            self.member = MemberCore(
                *(grant, joined.client, transport, self.latch, remapping, shared, driver, voice)
            )
            self.member.start()

    @property
    def ticket(self) -> Ticket:
        """By which it works now."""
        return self.latch.ticket

    async def look_at_window(self) -> None:
        """A window of Python's that has failed ends the session."""
        if (error := self.manner.window_error()) is not None:
            await self.latch.fail(error)

    def submit(self, ptr_in: int, ptr_out: int, what: Collective, keep: object) -> Operation:
        """Begin one; `keep` stays as long as it is under way.

        Raises SessionClosedError, SessionFrozenError, HeadroomError, ValueError: there is no such
        collective.
        """
        if self.is_closed:
            raise self.closed_error()
        if self._frozen is not None:
            raise SessionFrozenError(f"{who(self.ticket)}: the session is frozen")
        self._check_headroom(what)
        operation = self.transport.submit(ptr_in, ptr_out, what)
        self._inflight.add(operation, keep)
        return operation

    def _check_headroom(self, what: Collective) -> None:
        if what.is_moved:
            return
        bits, workers = 32 // values_per_word(what.value_type), self.ticket.world_size
        if workers > MOST_WORKERS[bits]:
            raise HeadroomError(f"{who(self.ticket)}: {what}: {too_narrow(bits, workers)}")

    def forget(self, operation: Operation) -> None:
        """It has ended. Idempotent."""
        self._inflight.forget(operation.id)

    async def error_of(self, operation: Operation) -> InaError | None:
        """Why it has failed, a copy for each caller; None: it has not."""
        if operation.state != OperationState.FAILED:
            return None
        error = self._errors.get(operation.id) or await self.latch.told()
        assert error is not None, "an operation failed without a reason"
        return error

    async def freeze(self) -> Frozen:
        """Stop sending and accepting for good; again returns the same.

        Raises InvalidInputError unless the session is recoverable, SessionClosedError, and the
        session's own error when it has failed already.
        """
        if not self._recoverable:
            raise InvalidInputError(f"{who(self.ticket)}: recoverable was not asked for")
        if self.is_closed:
            raise self.closed_error()
        if self._frozen is None:
            await self.latch.freeze()
            submitted = self.transport.stats().worker.tensors_submitted
            export = export_of(self._joined_with, submitted, self.transport)
            self._frozen = Frozen(self.transport, export, self._errors)
        return self._frozen

    def closes(self) -> bool:
        """From now on it takes nothing; False: so it did before. leave() is to follow."""
        was_closed, self.is_closed = self.is_closed, True
        return not was_closed

    async def leave(self, stop: Callable[[], None]) -> None:
        """Leave the job. `stop`: ends the transport, and all that waits for it.

        Pending operations end with SessionClosedError.
        """

        def end() -> None:
            stop()
            self.latch.close(self.manner.window_error())
            self._inflight.clear()

        await self._settle_debts()
        if self.member is None:
            await self._driver.outside(end)
        else:
            await self.member.leave(end, is_frozen=self._frozen is not None)

    async def _settle_debts(self) -> None:
        """Until others have what this worker alone sends them, if that is soon."""
        until_s = self._driver.now_s() + self._owed_s
        while self._is_owed() and self._driver.now_s() < until_s:
            await self._driver.sleep(_LOOK_S)

    def _is_owed(self) -> bool:
        """Not where operations are pending or have failed: their results are nobody's."""
        if self._frozen is not None or self.latch.is_settled.is_set():
            return False
        return self.transport.owes() and not self._inflight.has_pending()

    def closed_error(self) -> SessionClosedError:
        """Of operations that were under way then, and of all later ones."""
        return SessionClosedError(f"{who(self.ticket)}: the session is closed")


def halts(options: WorkerOptions) -> bool:
    """Whether results that are no sums halt the transport, and others are asked what follows."""
    return options.recoverable and options.on_failure is not None
