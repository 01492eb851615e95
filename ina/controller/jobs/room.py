"""What a registry asks about slots. Here each job has what it asks for."""

from __future__ import annotations

from collections.abc import Sequence

from ina.controller.errors import NoRoomError
from ina.controller.job import Job
from ina.controller.memory.demand import StepModel


class Room:
    """Nobody waits; :class:`~ina.controller.slots.memory.Memory` does better."""

    takes_what_is_left = False
    """Whether a job may get fewer slots than usual, as its tenant's quota leaves them."""

    def sized(self, job: Job, switches: Sequence[str]) -> int:
        """Slots that a new job is to take at each of these; none: at any one.

        Raises :class:`NoRoomError`: it is not its turn, or there are too few.
        """
        return job.spec.slots

    async def waits(self, job: Job, error: NoRoomError) -> bool:
        """Of a fabric, where all workers are here: whether slots may be free now, after a while."""
        return False

    def granted(self, job: Job) -> None:
        """It has slots for the first time."""

    def known_steps(self, job: Job) -> StepModel | None:
        """What its workers' reports say of its steps; None: not enough yet."""
        return None
