"""One P4Runtime session with one switch: election, a sign of life, writes, reads.

Every call has a deadline. A session ends with its stream; it does not connect again. What carries
it is a :class:`~ina.tables.wire.Wire`: the virtual network's sessions are these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from ina.rpc.tls import PLAIN_TEXT, TlsFiles
from ina.tables.entities import ProgramFiles
from ina.tables.errors import SwitchError
from ina.tables.grpc_wire import GrpcWire
from ina.tables.values import (
    AnyItem,
    Count,
    Counter,
    CounterRef,
    Entry,
    Group,
    Match,
    PortDrop,
    PortState,
)
from ina.tables.wire import Standing, TableUpdate, Wire

CONNECT_TIMEOUT_S = 10.0
FORMER_SELF_ATTEMPTS, FORMER_SELF_PAUSE_S = 10, 0.1
"""A controller that starts again may be faster than the switch's news that its stream has ended."""
TLS_PATIENCE_S = 1.0
"""After so long without an answer, ask whether TLS is the trouble: waiting does not mend that."""
PROBE_S = 2.0
"""How often the switch is asked for a sign of life; no answer to a call ends the session."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class P4RuntimeSession:
    """A :class:`~ina.tables.session.SwitchSession`. Use :meth:`connect`; :meth:`close` ends it."""

    def __init__(
        self, wire: Wire, address: str, device_id: int, election_id: int, *, standby: bool
    ) -> None:
        self.address = address
        self.device_id = device_id
        self.election_id = election_id
        """What it has told the switch; a backup raises it to become primary."""
        self.is_primary = False
        self.writes_for_primary = False
        """As a backup, write in the primary's name: whoever shares a switch's tables with it."""
        self.lost: str | None = None
        """Why it is of no use any more; None: it works."""
        self.heard_s = asyncio.get_running_loop().time()
        """When the switch answered last."""
        self._wire = wire
        self._own_id = election_id
        self._standby = standby
        self.primary_id = 0
        """Of another client that is primary; 0: none is."""
        self._decided = False
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_busy = False

    @classmethod
    async def connect(
        cls,
        address: str,
        device_id: int,
        program: ProgramFiles | None = None,
        *,
        election_id: int = 1,
        tls: TlsFiles = PLAIN_TEXT,
        timeout_s: float = CONNECT_TIMEOUT_S,
        standby: bool = False,
    ) -> P4RuntimeSession:
        """Connects to the P4Runtime server at ``address`` (``host:port`` or ``unix:PATH``).

        ``program``: what the switch shall run, whose names are known; None: only roles are.
        ``standby``: where another client is primary, go on as a backup, which becomes primary when
        that one's stream ends; otherwise that is an error.

        Raises :class:`SwitchError`: nobody answers, TLS fails, or another client is primary;
        :class:`~ina.rpc.tls.TlsError`: a file of ``tls`` is wrong.
        """
        return await cls.over(
            lambda: GrpcWire(address, device_id, program, tls),
            address,
            device_id,
            election_id=election_id,
            timeout_s=timeout_s,
            standby=standby,
        )

    @classmethod
    async def over(
        cls,
        wire: Callable[[], Wire],
        address: str,
        device_id: int,
        *,
        election_id: int,
        timeout_s: float = CONNECT_TIMEOUT_S,
        standby: bool,
    ) -> P4RuntimeSession:
        """Connects by a new ``wire`` at each attempt. See :meth:`connect`."""
        for attempt in range(FORMER_SELF_ATTEMPTS + 1):
            session = cls(wire(), address, device_id, election_id, standby=standby)
            # A backup whose id somebody else uses says none, until it must.
            anonymous = attempt == FORMER_SELF_ATTEMPTS
            try:
                await session._arbitrate_in_time(timeout_s, anonymous=anonymous)
                break
            except BaseException as error:
                await session.close()
                tries = FORMER_SELF_ATTEMPTS if standby else FORMER_SELF_ATTEMPTS - 1
                if attempt >= tries or not _is_id_used(error):
                    raise
            await asyncio.sleep(FORMER_SELF_PAUSE_S)
        session._tasks = [
            asyncio.create_task(session._listen()),
            asyncio.create_task(session._probe()),
        ]
        return session

    async def close(self) -> None:
        """Ends the session; the switch keeps its entries."""
        self._end("the session is closed")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._wire.close()

    async def until_primary(self) -> None:
        """Returns when this client is primary; raises :class:`SwitchError` if it is lost."""
        await self._until(primary=True)

    async def until_backup(self) -> None:
        """Returns when another is primary; raises :class:`SwitchError` if the session is lost."""
        await self._until(primary=False)

    def who_is_primary(self) -> str:
        """For people: why this one is not."""
        if self.primary_id == 0:
            return "no controller is primary"
        return f"another controller is primary (election id {self.primary_id})"

    async def has_pipeline(self) -> bool:
        """Whether the switch runs the program."""
        return await self._ask(self._wire.runs_program)

    async def set_pipeline(self, *, anew: bool = False) -> bool:
        """Sets the program if the switch runs another; returns whether it did.

        Ports are the switch's own affair here. ``anew``: set it also where it runs.
        """
        self._is_busy = True
        try:
            if not anew and await self._ask(self._wire.runs_program):
                return False
            await self._ask(self._wire.set_program, self._as_id)
        finally:
            self._is_busy = False
        return True

    def port_number(self, name: str) -> int:
        """P4Runtime knows numbers alone."""
        raise self._error(f"port {name}: P4Runtime has no names of the front panel")

    async def insert(self, items: Sequence[AnyItem]) -> None:
        """See :class:`SwitchSession`."""
        await self._write(TableUpdate.INSERT, items)

    async def modify(self, items: Sequence[AnyItem]) -> None:
        """See :class:`SwitchSession`."""
        await self._write(TableUpdate.MODIFY, items)

    async def delete(self, items: Sequence[AnyItem]) -> None:
        """See :class:`SwitchSession`."""
        await self._write(TableUpdate.DELETE, items)

    async def read_entries(self, table: str = "") -> list[Entry]:
        """See :class:`SwitchSession`."""
        return await self._ask(self._wire.read_entries, table)

    async def read_groups(self) -> list[Group]:
        """See :class:`SwitchSession`."""
        return await self._ask(self._wire.read_groups)

    async def read_counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """See :class:`SwitchSession`."""
        return await self._ask(self._wire.read_counts, refs) if refs else []

    async def clear_counts(self, counters: Sequence[Counter]) -> None:
        """See :class:`SwitchSession`."""
        if counters:
            await self._ask(self._wire.clear_counts, counters, self._as_id)

    async def read_row_counts(self, table: str) -> list[tuple[Match, Count]]:
        """See :class:`SwitchSession`."""
        return await self._ask(self._wire.read_row_counts, table)

    async def read_port_drops(self) -> list[PortDrop]:
        """See :class:`SwitchSession`."""
        return await self._ask(self._wire.read_port_drops)

    async def read_ports(self) -> list[PortState]:
        """P4Runtime tells of none."""
        return []

    @property
    def _as_id(self) -> int:
        """Writes carry an election id: the switch refuses those of a former primary."""
        primary_id = self.primary_id if self.writes_for_primary else 0
        return primary_id or self.election_id

    async def _write(self, change: TableUpdate, items: Sequence[AnyItem]) -> None:
        if items:
            await self._ask(self._wire.write, change, items, self._as_id)
        else:
            self._check()

    async def _ask(
        self, call: Callable[_P, Awaitable[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        self._check()
        try:
            with self._hanging_up():
                answer = await call(*args, **kwargs)
        except SwitchError as error:
            if error.refused:
                self._hears()
            raise
        self._hears()
        return answer

    async def _until(self, *, primary: bool) -> None:
        while self.is_primary is not primary:
            self._check()
            self._changed.clear()
            await self._changed.wait()
        self._check()

    async def _arbitrate_in_time(self, timeout_s: float, *, anonymous: bool) -> None:
        arbitrated = asyncio.ensure_future(self._arbitrate(anonymous=anonymous))
        trouble = None
        try:
            await asyncio.wait([arbitrated], timeout=min(timeout_s, TLS_PATIENCE_S))
            if not arbitrated.done():  # gRPC tries again whatever the reason: ask for it
                trouble = await self._wire.trouble()
            await asyncio.wait_for(arbitrated, 0 if trouble else timeout_s)
        except asyncio.TimeoutError:
            raise self._error(trouble or f"no answer within {timeout_s:g} s") from None
        finally:
            arbitrated.cancel()

    async def _arbitrate(self, *, anonymous: bool) -> None:
        await self._wire.open()
        await self._elect(0 if anonymous else self._own_id)
        while not self._decided:
            await self._take_news()
        if not self.is_primary and not self._standby:
            raise self._error(self.who_is_primary())

    async def _elect(self, election_id: int) -> None:
        self.election_id = election_id
        await self._wire.elect(election_id)

    async def _take_news(self) -> None:
        standing, highest_id = await self._wire.news()
        self._hears()
        self.is_primary = standing is Standing.PRIMARY
        self.primary_id = highest_id if standing is Standing.BACKUP else 0
        self._decided = standing is not Standing.NOBODY
        self._changed.set()
        if not self._decided:
            # Nobody is primary, and only the highest id ever seen, or a higher one, can be. Adding
            # the configured one keeps several backups that do so at once apart.
            await self._elect(max(highest_id, self.election_id) + self._own_id)

    async def _listen(self) -> None:
        """Reads the stream, so that it never blocks the switch, and learns when it ends."""
        try:
            while True:
                await self._take_news()
        except SwitchError as error:
            self._end(str(error))
        finally:
            self._end(str(self._error("it closed the stream")))

    async def _probe(self) -> None:
        """A machine that loses power says nothing on the stream either."""
        while self.lost is None:
            await asyncio.sleep(PROBE_S)
            try:
                if not self._is_busy:
                    await self._ask(self._wire.probe)
            except SwitchError as error:
                self._end(str(error))

    def _hears(self) -> None:
        self.heard_s = asyncio.get_running_loop().time()

    def _end(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
        self.is_primary = False
        self._changed.set()

    @contextmanager
    def _hanging_up(self) -> Iterator[None]:
        """A call whose channel is closed meanwhile has failed.

        gRPC tells it as if its task had been cancelled; then the task would end without a word.
        """
        try:
            yield
        except asyncio.CancelledError:
            task: Any = asyncio.current_task()
            is_cancelled = hasattr(task, "cancelling") and task.cancelling()  # from 3.11 on
            if self.lost is None or is_cancelled:
                raise
            raise SwitchError(self.lost) from None

    def _check(self) -> None:
        if self.lost is not None:
            raise SwitchError(self.lost)

    def _error(self, what: str) -> SwitchError:
        return SwitchError(f"switch {self.address} device {self.device_id}: {what}")


def _is_id_used(error: BaseException) -> bool:
    said = str(error).lower()
    return isinstance(error, SwitchError) and ("already used" in said or "already exists" in said)
