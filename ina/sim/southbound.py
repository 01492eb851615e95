"""What carries a controller's P4Runtime session in the virtual network: messages to an agent.

Above it is :class:`~ina.tables.p4runtime.P4RuntimeSession`, as over gRPC: election, signs of life
and what ends a session are the shipped ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from finsy.proto import p4r

from ina.controller.config import Config, SwitchConfig
from ina.sim.agent import DEVICE_ID, RefusedError, SwitchAgent
from ina.sim.messages import Path
from ina.sim.messages import Wire as Direction
from ina.sim.process import Process
from ina.switch.p4runtime.arbitration import Client
from ina.tables.errors import SwitchError
from ina.tables.p4runtime import P4RuntimeSession
from ina.tables.values import AnyItem, Count, Counter, CounterRef, Entry, Group, Match, PortDrop
from ina.tables.wire import News, TableUpdate, news_of

CALL_TIMEOUT_S = 10.0
"""As finsy's client has it."""
_KNOCKS_S = (1.0, 3.0, 7.0)
"""When a host's TCP tries again to open a connection that nobody answers (RFC 6298, 2.1)."""

_T = TypeVar("_T")


async def connect(
    process: Process, agent: SwitchAgent, path: Path, switch: SwitchConfig, *, standby: bool
) -> P4RuntimeSession:
    """A session of a ``process``, which ends when that dies. Raises :class:`SwitchError`."""
    process.check()
    return await P4RuntimeSession.over(
        lambda: SimWire(process, agent, path, switch.grpc_addr),
        switch.grpc_addr,
        DEVICE_ID,
        election_id=switch.election_id,
        standby=standby,
    )


class SimWire:
    """A :class:`~ina.tables.wire.Wire`."""

    def __init__(self, process: Process, agent: SwitchAgent, path: Path, address: str) -> None:
        """``process``: the controller; when it dies, its connection ends."""
        self._address = address
        self._process = process
        self._agent = agent
        self._boot: int | None = None  # of the server that has taken the connection
        self._knocks_s = iter(_KNOCKS_S)
        self._knocked_s = 0.0
        self._there, self._back = Direction(path, ">"), Direction(path, "<")
        self._client = Client(self._notify)
        self._news: asyncio.Queue[News | None] = asyncio.Queue()
        self._broken: SwitchError | None = None
        self._hung_up = False
        self._asked: dict[asyncio.Future[Any], None] = {}  # in order
        process.at_death(self._hang_up)

    async def open(self) -> None:
        """With the first message."""

    async def close(self) -> None:
        """See :class:`Wire`."""
        self._process.check()
        self._hang_up()

    async def trouble(self) -> str | None:
        """None: there is no TLS here."""
        return None

    async def elect(self, election_id: int) -> None:
        """See :class:`Wire`."""
        self._process.check()
        self._elect(election_id)

    async def news(self) -> News:
        """See :class:`Wire`."""
        told = await self._news.get()
        self._process.check()
        if told is None:
            assert self._broken is not None
            raise self._broken
        return told

    async def probe(self) -> None:
        """See :class:`Wire`."""
        await self._call("cookie", lambda: None)

    async def runs_program(self) -> bool:
        """See :class:`Wire`."""
        return await self._call("cookie", lambda: self._agent.has_program)

    async def set_program(self, as_id: int) -> None:
        """See :class:`Wire`."""
        await self._write("set the program", self._agent.set_program, as_id)

    async def write(self, change: TableUpdate, items: Sequence[AnyItem], as_id: int) -> None:
        """See :class:`Wire`."""
        rows = [item for item in items if isinstance(item, Entry | Group)]
        assert len(rows) == len(items), "a controller writes entries and groups alone"
        what = f"{change.value} {' '.join(map(_text, rows))}"
        await self._write(what, lambda: self._agent.write(change.value, rows), as_id)

    async def read_entries(self, table: str) -> list[Entry]:
        """See :class:`Wire`."""
        return await self._call(f"read {table}", lambda: self._agent.read_entries(table))

    async def read_groups(self) -> list[Group]:
        """See :class:`Wire`."""
        return await self._call("read groups", self._agent.read_groups)

    async def read_counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """See :class:`Wire`. Of indirect counters."""
        counters = [ref for ref in refs if isinstance(ref, Counter)]
        return await self._call("read counters", lambda: self._agent.read_counts(counters))

    async def clear_counts(self, counters: Sequence[Counter], as_id: int) -> None:
        """See :class:`Wire`."""
        what = f"clear {counters[0].index}"
        await self._write(what, lambda: self._agent.clear_counts(counters), as_id)

    async def read_row_counts(self, table: str) -> list[tuple[Match, Count]]:
        """See :class:`Wire`."""
        found = await self._call(f"count {table}", lambda: self._agent.read_row_counts(table))
        return [(entry.match, count) for entry, count in found]

    async def read_port_drops(self) -> list[PortDrop]:
        """See :class:`Wire`. Links lose, not ports."""
        return []

    def _elect(self, election_id: int) -> None:
        def arrive() -> None:
            if self._boot is None:
                if not self._agent.has_power:
                    return self._knock_again(election_id)
                self._boot = self._agent.boots
            if not self._is_up():
                return
            try:
                self._agent.arbitrate(self._client, election_id, self._server_ends)
            except RefusedError as error:
                refused = str(error)
                self._back.end("the stream", lambda: self._breaks(refused))

        self._there.send(f"elect {election_id}", arrive)

    def _knock_again(self, election_id: int) -> None:
        """It was off when the connection was to be opened."""
        at_s = next(self._knocks_s, None)
        if at_s is None:
            return
        pause_s, self._knocked_s = at_s - self._knocked_s, at_s

        def knock() -> None:
            if self._broken is None and not self._hung_up and not self._process.is_dead:
                self._elect(election_id)

        asyncio.get_running_loop().call_later(pause_s, knock)

    def _notify(self, response: p4r.StreamMessageResponse) -> None:
        """From the agent, to whom this client's stream leads."""
        news = news_of(response.arbitration)

        def arrive() -> None:
            if self._broken is None and not self._process.is_dead:
                self._news.put_nowait(news)

        def lost() -> None:
            # Without it the session would go on in a wrong belief, as no stream does.
            self._breaks("the stream broke")
            self._hang_up()

        self._back.send(f"{news.standing.name} of {news.highest_id}", arrive, lost=lost)

    def _server_ends(self) -> None:
        self._back.end("the stream", lambda: self._breaks("it closed the stream"))

    def _breaks(self, why: str) -> None:
        """The connection is gone, and with it each call that waits for its answer."""
        self._broken = self._broken or self._error(why)
        self._news.put_nowait(None)
        for answer in self._asked:
            _fail(answer, self._error(why))

    def _hang_up(self) -> None:
        if not self._hung_up:
            self._hung_up = True
            self._there.end("the stream", self._leaves)

    def _leaves(self) -> None:
        if self._is_up():
            self._agent.leave(self._client)

    async def _write(self, what: str, work: Callable[[], _T], as_id: int) -> _T:
        def as_primary() -> _T:
            self._agent.require_primary(as_id)
            return work()

        return await self._call(what, as_primary)

    async def _call(self, what: str, work: Callable[[], _T]) -> _T:
        self._process.check()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def arrive() -> None:
            if not self._is_up():
                return
            result: Any = None
            error: SwitchError | None = None
            try:
                result = work()
            except RefusedError as refused:
                error = self._error(str(refused))
                error.refused = True

            def back() -> None:
                if self._process.is_dead:
                    return
                if error is not None:
                    _fail(answer, error)
                elif not answer.done():
                    answer.set_result(result)

            self._back.send(f"{what} {'refused' if error else 'done'}", back)

        self._asked[answer] = None
        self._there.send(what, arrive)
        try:
            done, _ = await asyncio.wait([answer], timeout=CALL_TIMEOUT_S)
        finally:
            self._process.check()
            del self._asked[answer]
            if not answer.done():
                answer.cancel()
        if not done:
            raise self._error(f"no answer within {CALL_TIMEOUT_S:g} s")
        return answer.result()  # type: ignore[no-any-return]

    def _is_up(self) -> bool:
        """Whether the server is the one that this connection was made with."""
        return self._agent.has_power and self._agent.boots == self._boot

    def _error(self, what: str) -> SwitchError:
        return SwitchError(f"switch {self._address} device {DEVICE_ID}: {what}")


class Southbound:
    """How one controller reaches its switches: :class:`ina.controller.switches.link.Connect`."""

    def __init__(
        self, process: Process, agents: Mapping[str, SwitchAgent], paths: Mapping[str, Path]
    ) -> None:
        """``agents``, and the ``paths`` to them: by the switch's name."""
        self._process = process
        self._agents = agents
        self._paths = paths

    async def __call__(
        self, config: Config, switch: SwitchConfig, *, standby: bool
    ) -> P4RuntimeSession:
        """Connects. Raises :class:`SwitchError`."""
        agent, path = self._agents[switch.name], self._paths[switch.name]
        return await connect(self._process, agent, path, switch, standby=standby)


def _fail(answer: asyncio.Future[Any], error: SwitchError) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # seen, also where nobody waits any more


def _text(row: Entry | Group) -> str:
    if isinstance(row, Group):
        return f"group {row.number} {row.replicas}"
    return f"{row.table}{_pairs(row.match)}={row.action}{_pairs(row.params)}"


def _pairs(pairs: Match) -> str:
    return f"({','.join(f'{name}={value}' for name, value in pairs)})"
