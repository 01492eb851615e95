"""BFRuntime as a :class:`~ina.controller.switches.southbound.interface.SwitchSession`.

The server lets one client *bind* a program, and keeps the bond while that client's stream stands:
who has it is primary. Nobody can take it away, and nobody is told when it is free, so a backup asks
again and again. The SDE loads the program; here it is only found, and compared with what the
controller writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import grpc

from ina.controller.config import Config, SwitchConfig
from ina.controller.switches.plan import FIRST_GROUP, epoch_mark
from ina.controller.switches.southbound.bfrt.caller import Caller
from ina.controller.switches.southbound.bfrt.entries import Entries
from ina.controller.switches.southbound.bfrt.mirrors import Mirrors
from ina.controller.switches.southbound.bfrt.multicast import Multicast
from ina.controller.switches.southbound.bfrt.ports import Ports
from ina.controller.switches.southbound.bfrt.program import Program
from ina.controller.switches.southbound.bfrt.refusals import Refusals
from ina.controller.switches.southbound.bfrt.sde import load_client
from ina.p4 import names
from ina.tables.errors import SwitchError
from ina.tables.values import Count, Counter, Entry, Group, Item, MatchValue, PortState

_log = logging.getLogger(__name__)

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
_T = TypeVar("_T")
_GROUPS = range(FIRST_GROUP, FIRST_GROUP + names.JOBS_TOTAL)


class BfrtSwitch:
    """A connected session. Use :meth:`connect`; :meth:`close` ends it."""

    def __init__(self, gc: Any, config: Config, switch: SwitchConfig) -> None:
        """``gc``: the SDE's client module."""
        self.address = switch.grpc_addr
        self.device_id = switch.device_id
        self.election_id = switch.election_id
        self.is_primary = False
        self.lost: str | None = None
        self._config = switch
        self._places = config.ports_of(switch)
        self._gc = gc
        self._refusals = Refusals(gc, f"switch {self.address} device {self.device_id}")
        self._caller = Caller(self._refusals, self._hang_up)
        self._target = gc.Target(device_id=self.device_id, pipe_id=ALL_PIPES)
        self._interface: Any = None
        self._program: Program
        self._entries: Entries
        self._multicast: Multicast
        self._ports: Ports
        self._mirrors: Mirrors
        self._owner = "no controller is primary"
        self._lost = asyncio.Event()
        self.heard_s = time.monotonic()
        """When the switch answered last."""
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def connect(
        cls, config: Config, switch: SwitchConfig, *, standby: bool = False
    ) -> BfrtSwitch:
        """Connects to the BFRuntime server of one of the configuration's switches.

        ``standby``: where another client has the program, go on as a backup; otherwise that is an
        error. Raises :class:`SwitchError`, :class:`~ina.errors.MissingToolError` (no SDE).
        """
        session = cls(load_client(), config, switch)
        try:
            await session._caller.call("connect", session._open, CONNECT_TIMEOUT_S)
            for _ in range(FORMER_SELF_ATTEMPTS):
                if await session._bind():
                    break
                await asyncio.sleep(FORMER_SELF_PAUSE_S)
            if not session.is_primary and not standby:
                raise session._refusals.error(session.who_is_primary())
        except BaseException:
            await session.close()
            raise
        session._tasks = [asyncio.create_task(session._probe())]
        return session

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

    async def set_pipeline(self) -> bool:
        """Compares the program with what the controller writes, and sets up ports and mirrors.

        Returns False: the program was loaded by the SDE, whenever that was.
        """
        self._program.check(self._config.runs)
        await self._call("ports", self._set_up)
        return False

    def port_number(self, name: str) -> int:
        """The device port of a front-panel name; after :meth:`set_pipeline`."""
        return self._ports.number(name)

    async def insert(self, items: Sequence[Item]) -> None:
        """See :class:`SwitchSession`."""
        await self._call("insert", lambda: self._entries.insert(items))

    async def modify(self, items: Sequence[Item]) -> None:
        """See :class:`SwitchSession`."""
        await self._call("modify", lambda: self._entries.modify(items))

    async def delete(self, items: Sequence[Item]) -> None:
        """See :class:`SwitchSession`."""
        await self._call("delete", lambda: self._entries.delete(items))

    async def read_entries(self, table: str = "") -> list[Entry]:
        """See :class:`SwitchSession`. Tables whose entries the program fixes are left out."""
        tables = [table] if table else list(self._program.tables())
        return await self._call("read", lambda: self._entries.read(tables))

    async def read_groups(self) -> list[Group]:
        """See :class:`SwitchSession`."""
        return await self._call("read groups", self._multicast.read)

    async def read_cells(self, cells: Sequence[Counter]) -> list[tuple[Counter, Count]]:
        """See :class:`SwitchSession`. Of all pipes together."""
        return await self._call("read counters", lambda: self._entries.cells(cells))

    async def clear_cells(self, cells: Sequence[Counter]) -> None:
        """See :class:`SwitchSession`."""
        await self._call("clear counters", lambda: self._entries.clear(cells))

    async def read_row_counts(self, table: str) -> list[tuple[Mapping[str, MatchValue], Count]]:
        """See :class:`SwitchSession`."""
        return await self._call("read counters", lambda: self._entries.row_counts(table))

    async def read_ports(self) -> list[PortState]:
        """The configured ports."""
        return await self._call("read ports", lambda: self._ports.read(self._config.port))

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
            info = self._interface.bfrt_info_get(self._config.program or None)
        except RuntimeError:
            raise self._refusals.error(
                f"it does not run a program {self._config.program}: which one, bf_switchd's"
                " configuration says",
                refused=True,
            ) from None
        self._program = Program(gc, info, self._refusals)
        place = (gc, info, self._target, self._refusals)
        self._multicast, self._ports = Multicast(*place), Ports(*place)
        self._mirrors = Mirrors(*place)
        self._entries = Entries(gc, self._target, self._program, self._multicast, self._refusals)

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

    def _set_up(self) -> None:
        """In the client's thread."""
        switch = self._config
        swept = self._multicast.sweep(_GROUPS)
        if swept:
            _log.warning("removed %d multicast nodes that were in no group", swept)
        self._ports.resolve(
            [*(port.port for port in switch.port), *(mirror.port for mirror in switch.mirror)]
        )
        self._ports.resolve(self._places)
        for port in switch.port:
            self._ports.set_up(port)
        for mirror in switch.mirror:
            self._mirrors.set_up(mirror, self._ports.number(mirror.port))

    async def _call(self, doing: str, function: Callable[[], _T]) -> _T:
        self._check()
        if not self.is_primary:
            raise self._refusals.error(self.who_is_primary())
        return await self._caller.call(doing, function)

    async def _probe(self) -> None:
        """The stream tells when the server ends; a machine without power says nothing."""
        while self.lost is None:
            await asyncio.sleep(PROBE_S)
            try:
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
        self._entries.has(epoch_mark(0))

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
