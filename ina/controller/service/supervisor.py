"""Keeps sessions with the switches for ever, and this controller in the role that is its.

Primary is who has claimed the store. A controller claims it when every switch that it reaches takes
its writes, and stays primary for as long as nobody else claims it and one switch takes its writes,
or none answers. So the claim decides, and the election of each switch follows: where another
controller has some of the switches, who has no claim leaves the others to it.

A lost session is made anew with a growing pause. While it is lost a primary goes on answering, for
its jobs do not need it; what needs the switch fails with the reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from ina.controller.config import Config
from ina.controller.errors import FencedError, StoreError
from ina.controller.retry import wait_for
from ina.controller.service.switchboard import Switchboard
from ina.controller.service.term import Term
from ina.controller.store import Store
from ina.controller.surroundings import Surroundings
from ina.controller.switches.link import Connect, SwitchLink
from ina.controller.switches.southbound import connect
from ina.errors import InaError
from ina.rpc import controller_pb2 as pb2
from ina.tables.errors import SwitchError

_log = logging.getLogger(__name__)

FIRST_PAUSE_S, MAX_PAUSE_S = 0.1, 2.0
"""Between attempts to reach a switch; each pause is twice the one before."""
OVERTAKEN_ATTEMPTS = 5


class Supervisor:
    """The role of this process. ``switchboard`` follows it."""

    def __init__(
        self,
        config: Config,
        store: Store,
        surroundings: Surroundings | None = None,
        connect: Connect = connect,
    ) -> None:
        """``connect``: how a switch is reached."""
        self.around = surroundings or Surroundings()
        self.switchboard = Switchboard(self.describe, self._why_standby)
        self.term: Term | None = None
        """Set while this controller is primary."""
        self.on_term: Callable[[Term], None] = lambda term: None
        """Called with each term before it begins."""
        self.differs: Sequence[pb2.ConfigDifference] = ()
        """Other controllers of the store that are configured otherwise."""
        self.links = {
            switch.name: SwitchLink(switch, connect, self.around.monotonic_s)
            for switch in config.programmed
        }
        """By the switch's name, or the aggregator's."""
        self._config = config
        self._store = store
        self._started_unix_s = self.around.unix_s()
        self._tasks: list[asyncio.Task[None]] = []
        self._guard: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._closing = asyncio.Event()
        self._is_starting = True
        self._was_fenced = False
        self._why = "starting"

    async def start(self) -> None:
        """Reaches the switches and takes a role, then goes on by itself.

        Of several it need not reach all. Raises :class:`SwitchError`, :class:`StoreError`.
        """
        for tries_left in reversed(range(OVERTAKEN_ATTEMPTS)):
            try:
                await self._begin()
                break
            except (SwitchError, FencedError):
                # A switch may have refused what it was told because another, which starts at the
                # same time, has become primary meanwhile.
                if not (self._was_overtaken() and tries_left):
                    raise
            await self._hang_up()
        self._is_starting = False
        self._tasks = [asyncio.create_task(self._keep(link)) for link in self.links.values()]

    async def close(self) -> None:
        """Ends the term, if any, and the sessions."""
        self._closing.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._why = "the controller is stopping"
        await self._end_term(self._why)
        await self._hang_up()

    def reconfigure(self, config: Config) -> None:
        """From now on, what a file may change while it runs is as ``config`` has it."""
        self._config = config
        if self.term is not None:
            self.term.reconfigure(config)

    @property
    def unreachable(self) -> str | None:
        """Why no switch can be reached; None: one can."""
        whys = [link.unreachable for link in self.links.values()]
        return None if None in whys else whys[0]

    def describe(self) -> pb2.ShowControllerReply:
        """The answer to ShowController."""
        links = list(self.links.values())
        shown = [self._describe_switch(link) for link in links]
        reply = pb2.ShowControllerReply(
            role="standby" if self.term is None else "primary",
            election_id=shown[0].election_id,
            switch_addr=", ".join(switch.address for switch in shown),
            switch_state=shown[0].state if len(shown) == 1 else _joint_state(shown),
            store=self._store.name if self._config.store.is_shared else "",
            started_unix_s=self._started_unix_s,
            switches=shown,
            differs=self.differs,
        )
        if self.term is None:
            reply.standby_reason = self._why_standby()
        else:
            registry = self.term.registry
            reply.jobs = len(registry)
            reply.last_epoch = registry.epochs.last
            reply.slots_total = registry.slots_total()
            reply.slots_used = registry.slots_used()
        return reply

    def _describe_switch(self, link: SwitchLink) -> pb2.SwitchStatus:
        shown = pb2.SwitchStatus(
            name=link.name,
            address=link.config.grpc_addr,
            data_addr=link.config.data_addr,
            state=f"unreachable: {link.unreachable}" if link.unreachable else "connected",
            election_id=0 if link.session is None else link.session.election_id,
        )
        if self.term is not None:
            capacity = self.term.registry.switches[link.name]
            shown.slots_total, shown.slots_used = capacity.total, capacity.used()
        return shown

    def _was_overtaken(self) -> bool:
        sessions = [link.session for link in self.links.values() if link.session is not None]
        return any(it.lost is None for it in sessions) and self._config.store.is_shared

    def _why_standby(self) -> str:
        return self.unreachable or self._why

    async def _begin(self) -> None:
        """The first attempt, at all switches at once."""
        links = list(self.links.values())
        found = await asyncio.gather(*map(self._connect, links), return_exceptions=True)
        errors = [error for error in found if isinstance(error, BaseException)]
        for error in errors:
            if len(errors) == len(links) or not isinstance(error, SwitchError):
                raise error
        for link, result in zip(links, found, strict=True):
            if isinstance(result, SwitchError):
                self._is_unreachable(link, str(result))
        await self._settle()

    async def _keep(self, link: SwitchLink) -> None:
        """Makes one switch's session again and again."""
        pause_s = FIRST_PAUSE_S
        while not self._closing.is_set():
            try:
                if link.session is None:
                    await self._connect(link)
                    await self._settle()
                    await self._agree(link)
                    if link.session is not None:  # else something of it failed
                        pause_s = FIRST_PAUSE_S
                while True:
                    await self._follow(link)
            except StoreError as error:
                await self._retreat(error)
            except InaError as error:  # the switch; or a TLS file has gone, say
                if link.given_up_s is None:
                    self._is_unreachable(link, str(error))
                    await self._go_on_without(link)
            except Exception:  # a bug; that it never tried again would be worse
                _log.exception("switch %s", link.config.grpc_addr)
                async with self._turn:
                    await self._stand_by("internal error: see its log")
            await link.hang_up()
            if link.given_up_s is not None:
                pause_s = link.given_up_s
            await wait_for(self._closing, pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    async def _go_on_without(self, link: SwitchLink) -> None:
        """Others may have waited for it."""
        await link.hang_up()
        try:
            await self._settle()
        except StoreError as error:
            await self._retreat(error)
        except SwitchError:
            pass  # the tasks of the others will hear of it

    async def _connect(self, link: SwitchLink) -> None:
        # With a store of its own, a backup would know of no job when it takes over.
        standby = self._config.store.is_shared or self.term is not None
        await link.connect(self._config, standby=standby)

    async def _follow(self, link: SwitchLink) -> None:
        """Waits for the switch to have another primary, and does what follows.

        Raises :class:`SwitchError` when the session is lost.
        """
        session = link.session
        if session is None:
            raise SwitchError(f"switch {link.config.grpc_addr}: the session is closed")
        if session.is_primary is not link.was_ours:
            pass  # it changed while what came of the last change was being done
        elif session.is_primary:
            await session.until_backup()
        else:
            await session.until_primary()
            if self.term is None:
                _log.warning("taking over as primary of switch %s", session.address)
        await self._settle()
        await self._agree(link)

    async def _settle(self) -> None:
        """Takes the role that the sessions give.

        Raises :class:`SwitchError` if that fails at all of them; :class:`StoreError`.
        """
        async with self._turn:
            for link in self.links.values():
                link.was_ours = link.is_ours
            ours = [link for link in self.links.values() if link.was_ours]
            others = [link for link in self.links.values() if link.is_another_s]
            if others and not (self.term and ours):
                await self._leave_to_another(others[0], ours)
            elif self.term is not None:
                for link in others:
                    assert link.session is not None
                    why = f"switch {link.session.address}: {link.session.who_is_primary()}"
                    link.agrees = False
                    self._is_unreachable(link, why)
            elif ours and self._may_lead(ours):
                await self._lead(ours)
            elif ours:
                return
            for link in self.links.values():
                if link.session is not None and (self.term is None or link.agrees):
                    self._is_back(link)

    def _may_lead(self, ours: list[SwitchLink]) -> bool:
        """Whether who has these switches, and knows of no other primary, claims the store."""
        if not all(link.was_tried for link in self.links.values()):
            return False
        # Where another has claimed it and is not seen, both may have a part of the network.
        return not self._was_fenced or len(ours) == len(self.links)

    async def _leave_to_another(self, other: SwitchLink, ours: list[SwitchLink]) -> None:
        assert other.session is not None
        if self._is_starting:  # to find out when it must take over would be too late
            self._store.check_switch(self._data_addrs())
        self._was_fenced = False
        await self._stand_by(other.session.who_is_primary())
        for link in ours:  # those of several would both wait for the rest
            await link.give_up(MAX_PAUSE_S * self.around.uniform(0.5, 1.0))

    async def _agree(self, link: SwitchLink) -> None:
        """Makes a switch have what the term wants, unless that was done; raises what stores raise.

        It does not hold the turn of roles: one that is slow holds up no other.
        """
        async with link.agreeing:
            term = self.term
            if term is None or link.agrees or not link.is_ours:
                return
            try:
                fresh = await link.set_pipeline()
                term.claim.check()  # nobody else was primary while the switch was away
                await term.reconcile(link.name, fresh=fresh)
            except SwitchError as error:
                await self._fails(link, error)
                return
            if self.term is term:
                link.agrees = True
                self._is_back(link)

    async def _lead(self, links: list[SwitchLink]) -> None:
        """Claims the store, and makes these switches have what it says."""
        fresh, errors = await self._set_pipelines(links)
        # Who starts a controller says whose the store is. Later it is no more taken from another
        # switch's: that one would take it back, and so on for ever.
        claim = self._store.claim(self.around.name, self._data_addrs(), moves=self._is_starting)
        term = Term(self._config, claim, self.links, self.around)
        self.on_term(term)
        try:
            term.restore()
            errors |= await self._reconcile_all(term, fresh)
            if not any(link.agrees for link in fresh):
                raise next(iter(errors.values()))
            term.begin()
        except BaseException:
            await term.end("it could not take over")
            raise
        self._was_fenced = False
        self.term = term
        self._guard = asyncio.create_task(self._watch_store(term))
        self.switchboard.serve(term)
        self._why = ""
        for link, why in errors.items():
            await self._fails(link, why)
        level = logging.INFO if self._is_starting else logging.WARNING  # as what it ends was said
        for link in fresh:
            if link.session is not None:
                told = "primary of switch %s, election id %d"
                _log.log(level, told, link.session.address, link.session.election_id)

    async def _reconcile_all(
        self, term: Term, fresh: dict[SwitchLink, bool]
    ) -> dict[SwitchLink, SwitchError]:
        """Makes switches agree with a term that begins, at once; returns what others said."""
        errors: dict[SwitchLink, SwitchError] = {}

        async def reconcile(link: SwitchLink) -> None:
            async with link.agreeing:
                try:
                    await term.reconcile(link.name, fresh=fresh[link])
                    link.agrees = True
                except SwitchError as error:
                    errors[link] = error

        await _all(map(reconcile, fresh))
        return errors

    async def _set_pipelines(
        self, links: list[SwitchLink]
    ) -> tuple[dict[SwitchLink, bool], dict[SwitchLink, SwitchError]]:
        """Those that run the program now, and whether it was set just now; what others said.

        Raises :class:`SwitchError`: none does.
        """
        fresh: dict[SwitchLink, bool] = {}
        errors: dict[SwitchLink, SwitchError] = {}

        async def set_pipeline(link: SwitchLink) -> None:
            assert link.session is not None
            address, who = link.session.address, link.session.who_is_primary
            try:
                is_fresh = await link.set_pipeline()
                if not link.is_ours:  # so as not to take the store from who is by now
                    raise SwitchError(f"switch {address}: {who()}")
                fresh[link] = is_fresh
            except SwitchError as error:
                errors[link] = error

        await _all(map(set_pipeline, links))
        if not fresh:
            raise next(iter(errors.values()))
        return fresh, errors

    async def _watch_store(self, term: Term) -> None:
        try:
            await term.coordinator.until_broken()
        except StoreError as error:
            await self._retreat(error)

    async def _retreat(self, error: StoreError) -> None:
        """Leaves the switches to who has the store, for a while."""
        async with self._turn:
            self._was_fenced = isinstance(error, FencedError)
            level = logging.WARNING if self._was_fenced else logging.ERROR
            await self._stand_by(str(error), level)
            for link in self.links.values():
                await link.give_up(MAX_PAUSE_S)

    async def _stand_by(self, why: str, level: int = logging.WARNING) -> None:
        if why != self._why:  # told once, for as long as it is the same
            _log.log(level, "standby: %s", why)
        self._why = why
        await self._end_term(why)

    async def _end_term(self, why: str) -> None:
        self.switchboard.stand_by()
        guard, self._guard = self._guard, None
        if guard is not None and guard is not asyncio.current_task():
            guard.cancel()
        term, self.term = self.term, None
        for link in self.links.values():
            link.agrees = False
        if term is not None:
            await term.end(why)

    async def _hang_up(self) -> None:
        for link in self.links.values():
            await link.hang_up()

    async def _fails(self, link: SwitchLink, error: SwitchError) -> None:
        self._is_unreachable(link, str(error))
        await link.hang_up()

    def _is_unreachable(self, link: SwitchLink, why: str) -> None:
        if link.fails(why):
            _log.error("%s", why)
            self._tell(pb2.SWITCH_UNREACHABLE, link, why)

    def _is_back(self, link: SwitchLink) -> None:
        if link.works():
            _log.warning("switch %s is back", link.config.grpc_addr)
            self._tell(pb2.SWITCH_BACK, link, "")

    def _tell(self, kind: pb2.EventKind, link: SwitchLink, reason: str) -> None:
        if self.term is not None:
            event = pb2.JobEvent(kind=kind, reason=reason, switch=link.name)
            self.term.coordinator.events.publish(event)

    def _data_addrs(self) -> str:
        """Whose store it is: where workers reach the switches, however they are called."""
        return ", ".join(sorted(switch.data_addr for switch in self._config.switches))


async def _all(work: Iterable[Awaitable[None]]) -> None:
    """At once, until each has ended; then raises the first one's error."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _joint_state(shown: list[pb2.SwitchStatus]) -> str:
    """Of several switches: that all are connected, or which are not."""
    away = [f"{switch.name} {switch.state}" for switch in shown if switch.state != "connected"]
    return "; ".join(away) or "connected"
