"""What becomes of a job of a fabric for which its switches have no room, or have."""

from __future__ import annotations

from ina.controller.errors import NoRoomError
from ina.controller.job import Job


class Room:
    """Who finds none is refused."""

    async def waits(self, job: Job, error: NoRoomError) -> bool:
        """True, once slots may be free; False: it is refused, with ``error``."""
        return False

    def given(self, job: Job) -> None:
        """It has its slots."""
