"""A controller's session with a switch, without sockets: messages to its agent and back.

It behaves as :class:`~ina.controller.switches.southbound.p4runtime.P4RuntimeSession` does, whose
deadlines it has: each call ends, in time or with a :class:`SwitchError`; the switch is asked for a
sign of life; a backup raises its election id when nobody is primary any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from finsy.proto import U128, p4r, rpc_code

from ina.controller.config import Config, SwitchConfig
from ina.controller.switches.southbound.p4runtime import (
    CONNECT_TIMEOUT_S,
    FORMER_SELF_ATTEMPTS,
    FORMER_SELF_PAUSE_S,
    PROBE_S,
)
from ina.sim.agent import DEVICE_ID, RefusedError, SwitchAgent
from ina.sim.messages import Path, Wire
from ina.sim.process import Process
from ina.switch.p4runtime.arbitration import Client
from ina.tables.errors import SwitchError
from ina.tables.values import Count, Counter, Entry, Group, Item, Match, MatchValue, PortState

CALL_TIMEOUT_S = 10.0
"""As finsy's client has it."""
_KNOCKS_S = (1.0, 3.0, 7.0)
"""When a host's TCP tries again to open a connection that nobody answers (RFC 6298, 2.1)."""
_USED = "already used"

_T = TypeVar("_T")


class SimSession:
    """A :class:`~ina.controller.switches.southbound.interface.SwitchSession`."""

    def __init__(
        self, process: Process, agent: SwitchAgent, path: Path, switch: SwitchConfig, *,
        standby: bool,
    ) -> None:  # fmt: skip
        """``process``: the controller; when it dies, its session ends."""
        self.address = switch.grpc_addr
        self.device_id = DEVICE_ID
        self.election_id = switch.election_id
        self.is_primary = False
        self.lost: str | None = None
        self.heard_s = asyncio.get_running_loop().time()
        self._own_id = switch.election_id
        self._standby = standby
        self._primary_id = 0
        self._decided = False
        self._refusal: SwitchError | None = None
        self._changed = asyncio.Event()
        self._process = process
        self._agent = agent
        self._boot: int | None = None  # of the server that has taken the connection
        self._knocks_s = iter(_KNOCKS_S)
        self._knocked_s = 0.0
        self._there, self._back = Wire(path, ">"), Wire(path, "<")
        self._client = Client(self._notify)
        self._hung_up = False
        self._asked: dict[asyncio.Future[Any], None] = {}  # in order
        self._prober: asyncio.Task[None] | None = None
        process.at_death(self._hang_up)

    @classmethod
    async def connect(
        cls, process: Process, agent: SwitchAgent, path: Path, switch: SwitchConfig, *,
        standby: bool,
    ) -> SimSession:  # fmt: skip
        """See :func:`ina.controller.switches.southbound.connect.connect`."""
        for attempt in range(FORMER_SELF_ATTEMPTS + 1):
            session = cls(process, agent, path, switch, standby=standby)
            anonymous = attempt == FORMER_SELF_ATTEMPTS
            try:
                await session._open(anonymous=anonymous)
                break
            except SwitchError as error:
                await session.close()
                tries = FORMER_SELF_ATTEMPTS if standby else FORMER_SELF_ATTEMPTS - 1
                if attempt >= tries or _USED not in str(error):
                    raise
            await asyncio.sleep(FORMER_SELF_PAUSE_S)
        session._prober = asyncio.create_task(session._probe())
        return session

    async def close(self) -> None:
        """See :class:`SwitchSession`."""
        self._process.check()
        self._end("the session is closed")
        if self._prober is not None:
            self._prober.cancel()
        self._hang_up()

    def who_is_primary(self) -> str:
        """See :class:`SwitchSession`."""
        if self._primary_id == 0:
            return "no controller is primary"
        return f"another controller is primary (election id {self._primary_id})"

    async def until_primary(self) -> None:
        """See :class:`SwitchSession`."""
        await self._until(primary=True)

    async def until_backup(self) -> None:
        """See :class:`SwitchSession`."""
        await self._until(primary=False)

    async def set_pipeline(self) -> bool:
        """See :class:`SwitchSession`."""
        return await self._write("set the program", self._agent.set_program)

    def port_number(self, name: str) -> int:
        """P4Runtime knows numbers alone."""
        raise self._error(f"port {name}: P4Runtime has no names of the front panel")

    async def insert(self, items: Sequence[Item]) -> None:
        """See :class:`SwitchSession`."""
        await self._write(f"insert {_text(items)}", lambda: self._agent.write("insert", items))

    async def modify(self, items: Sequence[Item]) -> None:
        """See :class:`SwitchSession`."""
        if items:
            await self._write(f"modify {_text(items)}", lambda: self._agent.write("modify", items))

    async def delete(self, items: Sequence[Item]) -> None:
        """See :class:`SwitchSession`."""
        await self._write(f"delete {_text(items)}", lambda: self._agent.write("delete", items))

    async def read_entries(self, table: str = "") -> list[Entry]:
        """See :class:`SwitchSession`."""
        return await self._call(f"read {table}", lambda: self._agent.read_entries(table))

    async def read_groups(self) -> list[Group]:
        """See :class:`SwitchSession`."""
        return await self._call("read groups", self._agent.read_groups)

    async def read_cells(self, cells: Sequence[Counter]) -> list[tuple[Counter, Count]]:
        """See :class:`SwitchSession`."""
        return await self._call("read counters", lambda: self._agent.read_cells(cells))

    async def clear_cells(self, cells: Sequence[Counter]) -> None:
        """See :class:`SwitchSession`."""
        await self._write(f"clear {cells[0].index}", lambda: self._agent.clear_cells(cells))

    async def read_row_counts(self, table: str) -> list[tuple[Mapping[str, MatchValue], Count]]:
        """See :class:`SwitchSession`."""
        found = await self._call(f"count {table}", lambda: self._agent.read_row_counts(table))
        return [(dict(entry.match), count) for entry, count in found]

    async def read_ports(self) -> list[PortState]:
        """P4Runtime tells of none."""
        return []

    # -- election --

    async def _open(self, *, anonymous: bool) -> None:
        self._elect(0 if anonymous else self._own_id)
        deadline_s = asyncio.get_running_loop().time() + CONNECT_TIMEOUT_S
        while not self._decided:
            await self._wait_changed(deadline_s)
            if self._refusal is not None:
                raise self._refusal
            self._check()
        if not self.is_primary and not self._standby:
            raise self._error(self.who_is_primary())

    async def _wait_changed(self, deadline_s: float) -> None:
        self._changed.clear()
        try:
            left_s = deadline_s - asyncio.get_running_loop().time()
            await asyncio.wait_for(self._changed.wait(), max(0.0, left_s))
        except asyncio.TimeoutError:
            raise self._error(f"no answer within {CONNECT_TIMEOUT_S:g} s") from None
        self._process.check()

    def _elect(self, election_id: int) -> None:
        self.election_id = election_id

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
                self._refusal = self._error(str(error))
                self._back.end("stream", lambda: self._end(str(self._refusal)))

        self._there.send(f"elect {election_id}", arrive)

    def _knock_again(self, election_id: int) -> None:
        """It was off when the connection was to be opened."""
        at_s = next(self._knocks_s, None)
        if at_s is None:
            return
        pause_s, self._knocked_s = at_s - self._knocked_s, at_s

        def knock() -> None:
            if self.lost is None and not self._hung_up and not self._process.is_dead:
                self._elect(election_id)

        asyncio.get_running_loop().call_later(pause_s, knock)

    def _notify(self, response: p4r.StreamMessageResponse) -> None:
        """From the agent, to whom this client's stream leads."""
        update = response.arbitration
        code = update.status.code
        highest = U128.decode(update.election_id)

        def arrive() -> None:
            if self.lost is not None or self._process.is_dead:
                return
            self.heard_s = asyncio.get_running_loop().time()
            self.is_primary = code == rpc_code.OK
            self._primary_id = highest if code == rpc_code.ALREADY_EXISTS else 0
            self._decided = code != rpc_code.NOT_FOUND
            self._changed.set()
            if not self._decided:
                self._elect(max(highest, self.election_id) + self._own_id)

        # Without it the session would go on in a wrong belief, as no stream does.
        self._back.send(f"role {code} of {highest}", arrive, lost=self._breaks)

    def _breaks(self) -> None:
        self._fails("the stream broke")
        self._hang_up()

    def _server_ends(self) -> None:
        self._back.end("stream", lambda: self._fails("it closed the stream"))

    def _fails(self, why: str) -> None:
        """The connection is gone, and with it each call that waits for its answer."""
        error = self._error(why)
        self._end(str(error))
        for answer in self._asked:
            if not answer.done():
                answer.set_exception(error)
                answer.exception()  # seen, also where nobody waits any more

    def _hang_up(self) -> None:
        if self._hung_up:
            return
        self._hung_up = True
        self._there.end("stream", self._leaves)

    def _leaves(self) -> None:
        if self._is_up():
            self._agent.leave(self._client)

    async def _until(self, *, primary: bool) -> None:
        while self.is_primary is not primary:
            self._check()
            self._changed.clear()
            await self._changed.wait()
        self._check()

    # -- calls --

    async def _write(self, what: str, work: Callable[[], _T]) -> _T:
        election_id = self.election_id

        def as_primary() -> _T:
            self._agent.require_primary(election_id)
            return work()

        return await self._call(what, as_primary)

    async def _call(self, what: str, work: Callable[[], _T]) -> _T:
        self._check()
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
                if answer.done() or self._process.is_dead:
                    return
                self.heard_s = asyncio.get_running_loop().time()
                if error is None:
                    answer.set_result(result)
                else:
                    answer.set_exception(error)
                    answer.exception()  # seen, also where nobody waits any more

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

    async def _probe(self) -> None:
        while self.lost is None:
            await asyncio.sleep(PROBE_S)
            try:
                await self._call("cookie", lambda: None)
            except SwitchError as error:
                self._end(str(error))
                self._hang_up()

    def _is_up(self) -> bool:
        """Whether the server is the one that this session was made with."""
        return self._agent.has_power and self._agent.boots == self._boot

    def _end(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
        self.is_primary = False
        self._changed.set()

    def _check(self) -> None:
        self._process.check()
        if self.lost is not None:
            raise SwitchError(self.lost)

    def _error(self, what: str) -> SwitchError:
        return SwitchError(f"switch {self.address} device {self.device_id}: {what}")


class Southbound:
    """How one controller reaches its switches: :class:`ina.controller.switches.link.Connect`."""

    def __init__(
        self, process: Process, agents: Mapping[str, SwitchAgent], paths: Mapping[str, Path]
    ) -> None:
        """``agents``, and the ``paths`` to them: by the switch's name."""
        self._process = process
        self._agents = agents
        self._paths = paths

    async def __call__(self, config: Config, switch: SwitchConfig, *, standby: bool) -> SimSession:
        """Connects. Raises :class:`SwitchError`."""
        self._process.check()
        return await SimSession.connect(
            self._process,
            self._agents[switch.name],
            self._paths[switch.name],
            switch,
            standby=standby,
        )


def _text(items: Sequence[Item]) -> str:
    return " ".join(
        f"group {it.number} {it.replicas}"
        if isinstance(it, Group)
        else f"{it.table}{_pairs(it.match)}={it.action}{_pairs(it.params)}"
        for it in items
    )


def _pairs(pairs: Match) -> str:
    return f"({','.join(f'{name}={value}' for name, value in pairs)})"
