"""One controller's way to one switch: its session, made anew whenever it is lost; and the addresses
that packets to it have.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from ipaddress import IPv4Address
from typing import Protocol

from ina.controller.config import Config, SwitchConfig
from ina.controller.config.fabric import mac_number
from ina.controller.switches.southbound import connect
from ina.controller.switches.writer import SwitchWriter
from ina.protocol.addresses import SHM_SWITCH
from ina.protocol.peer import Peer
from ina.tables.session import SwitchSession


def data_address(switch: SwitchConfig) -> Peer:
    """As other switches and workers send to it."""
    mac = mac_number(switch.data_mac)
    return Peer(IPv4Address(switch.data_host), switch.data_udp_port, mac)


def own_addresses(switch: SwitchConfig) -> tuple[IPv4Address, ...]:
    """What packets have as their destination that are for this switch itself."""
    told = (IPv4Address(host) for host in dict.fromkeys((switch.data_host, *switch.data_hosts)))
    return (*told, *((SHM_SWITCH,) if switch.data_shm else ()))


class Connect(Protocol):
    """As :func:`~ina.controller.switches.southbound.connect`."""

    async def __call__(
        self, config: Config, switch: SwitchConfig, *, standby: bool
    ) -> SwitchSession:
        """Connects to a switch."""
        ...


class SwitchLink:
    """What is known of the switch in every role; its ``writer`` outlives its sessions.

    It decides nothing: who holds it connects, hangs up, and says what became of it.
    """

    def __init__(
        self,
        switch: SwitchConfig,
        connect: Connect = connect,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """``monotonic_s``: the clock of the sessions' ``heard_s``."""
        self.config = switch
        self._connect = connect
        self._monotonic_s = monotonic_s
        self.name = switch.name
        self.session: SwitchSession | None = None
        self.writer = SwitchWriter(mode=switch.mode)
        self.was_tried = False
        """Whether a first attempt to connect has ended, one way or the other."""
        self.was_ours = False
        """Whether it was ours when its controller last took a role."""
        self.agreeing = asyncio.Lock()
        """Held by who makes it agree."""
        self.agrees = False
        """Whether it was made to have what the term wants, in this session."""
        self.given_up_s: float | None = None
        """Left to another controller: how long to stay away; None: it is not."""
        self.unreachable: str | None = None
        """Why it cannot be reached, or written; None: it can."""
        self._unreachable_since_s = 0.0

    @property
    def is_ours(self) -> bool:
        """Whether it takes this controller's writes."""
        return self.session is not None and self.session.is_primary

    @property
    def is_another_s(self) -> bool:
        """Whether it answers, and takes another controller's writes."""
        session = self.session
        return session is not None and session.lost is None and not session.is_primary

    async def connect(self, config: Config, *, standby: bool) -> SwitchSession:
        """See :func:`~ina.controller.switches.southbound.connect`."""
        try:
            self.session = await self._connect(config, self.config, standby=standby)
        finally:
            self.was_tried = True
        self.agrees = False
        self.given_up_s = None
        return self.session

    async def set_pipeline(self) -> bool:
        """See :class:`SwitchSession`; from now on the writer writes by this session."""
        assert self.session is not None
        self.writer.session = self.session
        return await self.session.set_pipeline()

    async def hang_up(self) -> None:
        """Ends the session, if there is one; the switch keeps its entries."""
        session, self.session = self.session, None
        if session is not None:
            await session.close()

    async def give_up(self, pause_s: float) -> None:
        """Hangs up and leaves the switch to another controller for a while."""
        self.given_up_s = pause_s
        self.was_tried = False
        await self.hang_up()

    def fails(self, why: str) -> bool:
        """It cannot be reached, or written; returns whether that is news."""
        is_news = self.unreachable is None
        if is_news:
            # The call that found out has waited for its deadline since.
            session = self.session
            self._unreachable_since_s = self._monotonic_s() if session is None else session.heard_s
        self.unreachable = why
        return is_news

    def works(self) -> bool:
        """It is reached, and in the role that its controller has; whether that is news."""
        is_news = self.unreachable is not None
        self.unreachable = None
        return is_news

    def unreachable_s(self) -> float:
        """For how long it could not be reached, since its last word; 0: it can."""
        if self.unreachable is None:
            return 0.0
        return self._monotonic_s() - self._unreachable_since_s

    def port_number(self, port: int | str) -> int:
        """A port's number, by its number or its name on the front panel."""
        return port if isinstance(port, int) else self.writer.session.port_number(port)
