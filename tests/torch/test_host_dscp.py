"""What a host's node sends up carries the DSCP of the rank that runs it."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from ina.host import Session
from tests.host.ip_headers import Seen
from tests.torch.host_group import Group
from tests.worlds.processes.two_racks import two_racks

HOSTS = ("127.0.1.1", "127.0.1.1", "127.0.2.1")
"""Ranks 0 and 1 share a host, and a node there; rank 2 is alone."""
ECT0 = 2


async def test_what_goes_up_carries_it() -> None:
    array = np.arange(500, dtype=np.int32)

    def work(session: Session, rank: int) -> bool:
        return bool((session.all_reduce(array) == 3 * array).all())

    async with two_racks() as (app, switches):
        seen = Seen()
        group = Group(HOSTS, dscp=(46, 0, 10))
        answers: list[Any] = await group.together(app, work)
        frames = await asyncio.to_thread(seen.all)
        racks = {switch.udp_address(1) for switch in switches.values()}
    assert answers == [True] * 3
    # Tests that run beside this one have hosts of these addresses, too, but not these switches.
    sent = {
        host: {
            tos
            for (one, other), marks in frames.items()
            if one[0] == host and other in racks
            for tos in marks
        }
        for host in HOSTS
    }
    assert sent == {"127.0.1.1": {46 << 2 | ECT0}, "127.0.2.1": {10 << 2 | ECT0}}
