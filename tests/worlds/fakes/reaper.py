"""Kills a controller at a named point, in place of ``kill -9``."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.worlds.fakes.racks import Racks
from tests.worlds.fakes.sessions import Killed


class Reaper:
    """Kills at a point, for the ``times``-th time; from then on nothing of that life goes on."""

    def __init__(self, racks: Racks, point: str, times: int) -> None:
        self.racks = racks
        self.point = point
        self.left = times
        self.is_dead = False

    def __call__(self, point: str) -> None:
        if point == self.point and not self.is_dead:
            self.left -= 1
            self.is_dead = self.left == 0
            for session in self.racks.sessions.values():
                session.unused = self.is_dead
        if self.is_dead:
            raise Killed


async def bury(racks: Racks, alive: set[asyncio.Task[Any]]) -> None:
    """All that the dead controller was doing, and who waited for it; ``alive``: who did not."""
    while tasks := asyncio.all_tasks() - alive:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for session in racks.sessions.values():
        session.unused = False
