"""Programs a switch for traffic that is not ours, before the controller comes.

Run as a program inside a topology's control network: ADDRESS, how many values a packet has, a
Forwarding as JSON and the mode of the program. It sets the
same pipeline as the controller, which therefore keeps it, and all that is written here, later.
"""

from __future__ import annotations

import asyncio
import sys
import time

import msgspec
from finsy import P4MulticastGroupEntry, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4entity import P4Entity

from ina.controller.switches.southbound.p4runtime import P4RuntimeSession
from ina.p4 import compiled, names
from ina.tables.errors import SwitchError

FLOOD_GROUP = 1
START_TIMEOUT_S = 60.0
_PAUSE_S = 0.3


class Route(msgspec.Struct, frozen=True):
    """Where packets to a prefix go, and the addresses of the hop."""

    prefix: str
    port: int
    src_mac: str
    dst_mac: str


class Forwarding(msgspec.Struct, frozen=True):
    """What a switch shall know."""

    flood: tuple[int, ...] = ()
    """Where frames to unknown addresses go; none: they are dropped."""
    macs: dict[str, int] = {}
    """Ports by MAC address."""
    router_mac: str = ""
    """Frames to this one are routed."""
    routes: tuple[Route, ...] = ()

    def entities(self) -> list[P4Entity]:
        """What to insert."""
        found: list[P4Entity] = [
            P4TableEntry(
                names.DMAC,
                match=P4TableMatch(dst_mac=mac),
                action=P4TableAction(names.FORWARD, port=port),
            )
            for mac, port in self.macs.items()
        ]
        if self.router_mac:
            found.append(
                P4TableEntry(
                    names.ROUTER_MACS,
                    match=P4TableMatch(dst_mac=self.router_mac),
                    action=P4TableAction(names.NO_ACTION),
                )
            )
        found += [
            P4TableEntry(
                names.IPV4_LPM,
                match=P4TableMatch(dst_addr=route.prefix),
                action=P4TableAction(
                    names.ROUTE, port=route.port, src_mac=route.src_mac, dst_mac=route.dst_mac
                ),
            )
            for route in self.routes
        ]
        if self.flood:
            copies = tuple((port, rid) for rid, port in enumerate(self.flood, 1))
            found.append(P4MulticastGroupEntry(FLOOD_GROUP, replicas=copies))
        return found


async def program(address: str, values: int, forwarding: Forwarding, mode: str) -> None:
    """Waits for the switch to serve P4Runtime, then writes. Raises SwitchError."""
    session = await _connect(address)
    try:
        await session.set_pipeline(compiled(values, mode))
        await session.insert(forwarding.entities())
        if forwarding.flood:
            flood = P4TableEntry(
                names.DMAC,
                action=P4TableAction(names.FLOOD, group=FLOOD_GROUP),
                is_default_action=True,
            )
            await session.modify([flood])
    finally:
        await session.close()


async def _connect(address: str) -> P4RuntimeSession:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return await P4RuntimeSession.connect(address, 1)
        except SwitchError:
            if time.monotonic() > deadline_s:
                raise
        await asyncio.sleep(_PAUSE_S)


if __name__ == "__main__":
    asyncio.run(
        program(
            *(sys.argv[1], int(sys.argv[2])),
            msgspec.json.decode(sys.argv[3], type=Forwarding),
            sys.argv[4],
        )
    )
    print("programmed", flush=True)
