"""BFRuntime as a :class:`~ina.tables.session.SwitchSession`.

The server lets one client *bind* a program, and keeps the bond while that client's stream stands:
who has it is primary. Nobody can take it away, and nobody is told when it is free, so a backup asks
again and again. The SDE loads the program; here it is only found.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import grpc

from ina.p4 import names
from ina.tables.bfrt.caller import Caller
from ina.tables.bfrt.entries import Entries
from ina.tables.bfrt.multicast import Multicast
from ina.tables.bfrt.program import Program
from ina.tables.bfrt.refusals import Refusals
from ina.tables.errors import SwitchError
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

SUBSCRIBE_S, SUBSCRIBE_TRIES = 2.0, 5
"""How long the client waits for an answer to its first message, and how often it sends it."""
CONNECT_TIMEOUT_S = 15.0
PROBE_S = 2.0
"""How often the switch is asked for a sign of life."""
BIND_PAUSE_S = 1.0
"""How often a backup tries to bind the program."""
FORMER_SELF_ATTEMPTS, FORMER_SELF_PAUSE_S = 10, 0.1
"""A controller that starts again may be faster than the server, which still has its old stream."""
ALL_PIPES = 0xFFFF
RESET_TIMEOUT_S = 120.0
"""For emptying all tables."""
_SIGN_OF_LIFE = Entry(names.JOBS, (("job", 0), ("epoch", 0)), names.ADMIT_JOB)
"""Whether there is such an entry does not matter."""
_T = TypeVar("_T")


class BfrtSession:
    """Not connected until :meth:`connect`; :meth:`close` ends it."""

    def __init__(
        self, gc: Any, address: str, device_id: int, name: str, *, client_id: int, program: str = ""
    ) -> None:
        """``gc``: the SDE's client module, as :func:`~ina.tables.bfrt.sde.load_client` has it.

        ``name``: of the switch, for people. ``program``: its name in the SDE; empty: the one that
        runs.
        """
        self.address = address
        self.device_id = device_id
        self.election_id = client_id
        self.is_primary = False
        self.lost: str | None = None
        self._gc = gc
        self._wanted = program
        self._refusals = Refusals(gc, name)
        self._caller = Caller(self._refusals, self._hang_up)
        self._target = gc.Target(device_id=device_id, pipe_id=ALL_PIPES)
        self._interface: Any = None
        self._program: Program
        self._entries: Entries
        self._multicast: Multicast
        self._owner = "no controller is primary"
        self._lost = asyncio.Event()
        self.heard_s = time.monotonic()
        """When the switch answered last."""
        self._tasks: list[asyncio.Task[None]] = []
        self._is_busy = False

    async def connect(self, *, standby: bool = False) -> None:
        """Connects, learns the program and binds it. Once.

        ``standby``: where another client has the program, go on as a backup; otherwise that is an
        error. Raises :class:`SwitchError`.
        """
        try:
            await self._caller.call("connect", self._open, CONNECT_TIMEOUT_S)
            for _ in range(FORMER_SELF_ATTEMPTS):
                if await self._bind():
                    break
                await asyncio.sleep(FORMER_SELF_PAUSE_S)
            if not self.is_primary and not standby:
                raise self._refusals.error(self.who_is_primary())
        except BaseException:
            await self.close()
            raise
        self._tasks = [asyncio.create_task(self._probe())]

    async def close(self) -> None:
        """Ends the session; the switch keeps its entries."""
        self._end("the session is closed")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._interface is not None:
            with contextlib.suppress(SwitchError):
                await self._caller.call("close", self._interface.tear_down_stream, PROBE_S)
        self._hang_up()
        self._caller.close()

    async def until_primary(self) -> None:
        """Returns when this client has the program; raises :class:`SwitchError` if it is lost."""
        while not self.is_primary:
            self._check()
            if not await self._bind():
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._lost.wait(), BIND_PAUSE_S)
        self._check()

    async def until_backup(self) -> None:
        """Raises :class:`SwitchError` when the session is lost; nobody can take the program."""
        await self._lost.wait()
        self._check()

    def who_is_primary(self) -> str:
        """For people: why this one is not."""
        return self._owner

    async def set_pipeline(self, *, anew: bool = False) -> bool:
        """The program was loaded by the SDE, whenever that was; returns whether all was emptied.

        ``anew``: every table, group, counter and register is as after that.
        """
        if anew:
            self._is_busy = True
            try:
                await self._call("reset", self._entries.clear_all, RESET_TIMEOUT_S)
            finally:
                self._is_busy = False
        return anew

    def port_number(self, name: str) -> int:
        """Numbers alone are known here."""
        raise self._refusals.error(f"port {name}: a number is expected")

    async def insert(self, items: Sequence[AnyItem]) -> None:
        """See :class:`SwitchSession`."""
        await self._call("insert", lambda: self._entries.insert(items))

    async def modify(self, items: Sequence[AnyItem]) -> None:
        """See :class:`SwitchSession`."""
        await self._call("modify", lambda: self._entries.modify(items))

    async def delete(self, items: Sequence[AnyItem]) -> None:
        """See :class:`SwitchSession`."""
        await self._call("delete", lambda: self._entries.delete(items))

    async def read_entries(self, table: str = "") -> list[Entry]:
        """See :class:`SwitchSession`. Tables whose entries the program fixes are left out."""
        tables = [table] if table else list(self._program.tables())
        return await self._call("read", lambda: self._entries.read(tables))

    async def read_groups(self) -> list[Group]:
        """See :class:`SwitchSession`."""
        return await self._call("read groups", self._multicast.read)

    async def read_counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """See :class:`SwitchSession`. Of all pipes together."""
        return await self._call("read counters", lambda: [self._entries.count(it) for it in refs])

    async def clear_counts(self, counters: Sequence[Counter]) -> None:
        """See :class:`SwitchSession`."""
        await self._call("clear counters", lambda: self._entries.clear(counters))

    async def read_row_counts(self, table: str) -> list[tuple[Match, Count]]:
        """See :class:`SwitchSession`."""
        return await self._call("read counters", lambda: self._entries.row_counts(table))

    async def read_port_drops(self) -> list[PortDrop]:
        """None is known here."""
        return []

    async def read_ports(self) -> list[PortState]:
        """None is known here."""
        return []

    def _open(self) -> None:
        """Connects and learns the program. In the client's thread."""
        gc = self._gc
        try:
            self._interface = gc.ClientInterface(
                self.address,
                client_id=self.election_id,
                device_id=self.device_id,
                notifications=gc.Notifications(False, False, False),
                timeout=SUBSCRIBE_S,
                num_tries=SUBSCRIBE_TRIES,
            )
        except RuntimeError:  # the client says it with a format that nobody filled in
            raise self._refusals.error("no answer from a BFRuntime server") from None
        try:
            info = self._interface.bfrt_info_get(self._wanted or None)
        except RuntimeError:
            raise self._refusals.error(
                f"it does not run a program {self._wanted}: which one, bf_switchd's"
                " configuration says",
                refused=True,
            ) from None
        self._learn(info)

    def _learn(self, info: Any) -> None:
        """Of the program's description. In the client's thread."""
        self._program = Program(self._gc, info, self._refusals)
        self._multicast = Multicast(self._gc, info, self._target, self._refusals)
        self._entries = Entries(
            self._gc, self._target, self._program, self._multicast, self._refusals
        )

    async def _bind(self) -> bool:
        """Whether this client has the program now."""
        self.is_primary = await self._caller.call("bind", self._try_to_bind)
        return self.is_primary

    def _try_to_bind(self) -> bool:
        try:
            self._interface.bind_pipeline_config(self._program.name)
        except self._gc.BfruntimeRpcException as error:
            if not self._refusals.is_only(error, grpc.StatusCode.ALREADY_EXISTS):
                raise
            said = " ".join(str(error.grpc_error_get().details()).split())
            self._owner = f"another controller is primary ({said})"
            return False
        return True

    async def _call(
        self, doing: str, function: Callable[[], _T], timeout_s: float | None = None
    ) -> _T:
        self._check()
        if not self.is_primary:
            raise self._refusals.error(self.who_is_primary())
        return await self._caller.call(doing, function, timeout_s)

    async def _probe(self) -> None:
        """The stream tells when the server ends; a machine without power says nothing."""
        while self.lost is None:
            await asyncio.sleep(PROBE_S)
            try:
                if not self._is_busy:
                    await self._caller.call("probe", self._ask_for_life)
                    self.heard_s = time.monotonic()
            except SwitchError as error:
                self._end(str(error))

    def _ask_for_life(self) -> None:
        if not self._interface.stream_recv_thread.is_alive():
            raise self._refusals.error("it closed the stream")
        if not self.is_primary:  # who has not bound the program may only ask for its description
            self._interface.bfrt_info_get(self._program.name)
            return
        self._entries.has(_SIGN_OF_LIFE)

    def _hang_up(self) -> None:
        """Ends what waits for an answer."""
        if self._interface is not None:
            self._interface.channel.close()

    def _end(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
        self.is_primary = False
        self._lost.set()

    def _check(self) -> None:
        if self.lost is not None:
            raise SwitchError(self.lost)
