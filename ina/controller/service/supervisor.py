"""Keeps a session with the switch for ever, and this controller in the role the election gives it.

A lost session is made anew with a growing pause. While it is lost a primary goes on answering, for
its jobs do not need it; what needs the switch fails with the reason. It stops being primary when
the switch says that another is, or when another has claimed the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

from ina.controller.config import Config
from ina.controller.errors import FencedError, StoreError, SwitchError
from ina.controller.retry import wait_for
from ina.controller.service.switchboard import Switchboard
from ina.controller.service.term import Term, admission_of
from ina.controller.store import Store
from ina.controller.switches.southbound.connect import connect
from ina.controller.switches.southbound.interface import SwitchSession
from ina.controller.switches.writer import SwitchWriter
from ina.errors import InaError
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

FIRST_PAUSE_S, MAX_PAUSE_S = 0.1, 2.0
"""Between attempts to reach the switch; each pause is twice the one before."""
OVERTAKEN_ATTEMPTS = 5


class Supervisor:
    """The role of this process. ``switchboard`` follows it."""

    def __init__(self, config: Config, store: Store) -> None:
        self.switchboard = Switchboard(self.describe, self._why_standby)
        self.term: Term | None = None
        """Set while this controller is primary."""
        self.on_term: Callable[[Term], None] = lambda term: None
        """Called with each term before it begins."""
        self.unreachable: str | None = None
        """Why the switch cannot be reached; None: it can."""
        self.unreachable_since_s = 0.0
        """The switch's last word; monotonic; of use while ``unreachable``."""
        self._config = config
        self._store = store
        self._session: SwitchSession | None = None
        self._writer: SwitchWriter | None = None
        self._started_unix_s = time.time()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._why = "starting"

    async def start(self) -> None:
        """Reaches the switch and takes a role, then goes on by itself.

        Raises :class:`SwitchError`, :class:`StoreError`.
        """
        for tries_left in reversed(range(OVERTAKEN_ATTEMPTS)):
            try:
                await self._connect()
                break
            except (SwitchError, FencedError):
                # The switch may have refused what it was told because another, which starts at the
                # same time, has become primary meanwhile.
                if not (self._was_overtaken() and tries_left):
                    raise
            await self._hang_up()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Ends the term, if any, and the session."""
        self._closing.set()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._why = "the controller is stopping"
        await self._end_term(self._why)
        await self._hang_up()

    def reconfigure(self, config: Config) -> None:
        """From now on, tenants and what the switch is shown are those of ``config``."""
        self._config = config
        if self.term is not None:
            self.term.registry.admission = admission_of(config)

    def describe(self) -> pb2.ShowControllerReply:
        """The answer to ShowController."""
        switch = self._config.switch
        reply = pb2.ShowControllerReply(
            role="standby" if self.term is None else "primary",
            election_id=0 if self._session is None else self._session.election_id,
            switch_addr=switch.grpc_addr,
            switch_state=f"unreachable: {self.unreachable}" if self.unreachable else "connected",
            store=self._store.name if self._config.store.is_shared else "",
            started_unix_s=self._started_unix_s,
        )
        if self.term is None:
            reply.standby_reason = self._why_standby()
        else:
            registry = self.term.registry
            reply.jobs = len(registry)
            reply.last_epoch = registry.epochs.last
            reply.slots_total = registry.memory.total
            reply.slots_used = registry.memory.used()
        return reply

    def _was_overtaken(self) -> bool:
        session = self._session
        return session is not None and session.lost is None and self._config.store.is_shared

    @property
    def _is_starting(self) -> bool:
        return self._task is None

    def _unreachable_s(self) -> float:
        return 0.0 if self.unreachable is None else time.monotonic() - self.unreachable_since_s

    def _why_standby(self) -> str:
        return self.unreachable or self._why

    async def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._closing.is_set():
            try:
                if self._session is None:
                    await self._unless_broken(self._connect())
                    pause_s = FIRST_PAUSE_S
                while True:
                    await self._unless_broken(self._follow())
            except SwitchError as error:
                self._is_unreachable(str(error))
            except StoreError as error:  # told once, for as long as it is the same
                is_fenced = isinstance(error, FencedError)
                await self._stand_by(str(error), logging.WARNING if is_fenced else logging.ERROR)
                pause_s = MAX_PAUSE_S  # leave the switch to who has the store
            except InaError as error:  # a TLS file has gone, say
                self._is_unreachable(str(error))
            except Exception:  # a bug; that it never tried again would be worse
                _log.exception("switch %s", self._config.switch.grpc_addr)
                await self._stand_by("internal error: see its log")
            await self._hang_up()
            await wait_for(self._closing, pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    async def _connect(self) -> None:
        """Makes a session and takes the role that it comes with."""
        switch = self._config.switch
        # With a store of its own, a backup would know of no job when it takes over.
        standby = self._config.store.is_shared or self.term is not None
        self._session = await connect(self._config, standby=standby)
        if self._session.is_primary:
            await self._lead(self._session)
        else:
            if self._is_starting:  # to find out when it must take over would be too late
                self._store.check_switch(switch.data_addr)
            await self._stand_by(self._session.who_is_primary())
        if self.unreachable is not None:
            _log.warning("switch %s is back", switch.grpc_addr)
            self.unreachable = None
            self._tell(pb2.SWITCH_BACK, "")

    async def _follow(self) -> None:
        """Waits for the switch to give another role, and takes it.

        Raises :class:`SwitchError` when the session is lost.
        """
        session = self._session
        assert session is not None
        if self.term is not None:
            await session.until_backup()
            await self._stand_by(session.who_is_primary())
        else:
            await session.until_primary()
            _log.warning("taking over as primary of switch %s", session.address)
            await self._lead(session)

    async def _unless_broken(self, work: Coroutine[Any, Any, None]) -> None:
        """Does ``work``; raises :class:`StoreError` as soon as the term's store fails."""
        task = asyncio.ensure_future(work)
        broken = self._term_breaks()
        try:
            await asyncio.wait([task, broken], return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                broken.result()
            task.result()
        finally:
            task.cancel()
            broken.cancel()
            await asyncio.wait([task, broken])

    def _term_breaks(self) -> asyncio.Future[None]:
        if self.term is None:
            return asyncio.get_running_loop().create_future()
        return asyncio.ensure_future(self.term.coordinator.until_broken())

    async def _lead(self, session: SwitchSession) -> None:
        if self._writer is None:
            self._writer = SwitchWriter(session)
        self._writer.session = session
        fresh = await session.set_pipeline()
        if self.term is not None:
            self.term.claim.check()  # nobody else was primary while the switch was away
            await self.term.coordinator.reconcile(fresh=fresh)
            return
        if not session.is_primary:  # so as not to take the store from who is by now
            raise SwitchError(f"switch {session.address}: {session.who_is_primary()}")
        holder = f"{socket.gethostname()} process {os.getpid()}"
        # Who starts a controller says whose the store is. Later it is no more taken from another
        # switch's: that one would take it back, and so on for ever.
        switch = self._config.switch.data_addr
        claim = self._store.claim(holder, switch, moves=self._is_starting)
        term = Term(self._config, claim, self._writer, self._unreachable_s)
        self.on_term(term)
        try:
            await term.begin(fresh=fresh)
        except BaseException:
            await term.end("it could not take over")
            raise
        self.term = term
        self.switchboard.serve(term)
        self._why = ""
        level = logging.INFO if self._is_starting else logging.WARNING  # as what it ends was said
        told = "primary of switch %s, election id %d"
        _log.log(level, told, session.address, session.election_id)

    async def _stand_by(self, why: str, level: int = logging.WARNING) -> None:
        if why != self._why:
            _log.log(level, "standby: %s", why)
        self._why = why
        await self._end_term(why)

    async def _end_term(self, why: str) -> None:
        self.switchboard.stand_by()
        term, self.term = self.term, None
        if term is not None:
            await term.end(why)

    async def _hang_up(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _is_unreachable(self, why: str) -> None:
        if self.unreachable is None:
            _log.error("%s", why)
            # The call that found out has waited for its deadline since.
            session = self._session
            self.unreachable_since_s = time.monotonic() if session is None else session.heard_s
            self._tell(pb2.SWITCH_UNREACHABLE, why)
        self.unreachable = why

    def _tell(self, kind: pb2.EventKind, reason: str) -> None:
        if self.term is not None:
            self.term.coordinator.events.publish(pb2.JobEvent(kind=kind, reason=reason))
