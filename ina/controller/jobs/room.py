"""What a registry asks about slots, and the loop that looks for room where there is none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ina.controller.errors import NoRoomError, QuotaError
from ina.controller.job import Job, JobSpec
from ina.controller.memory.demand import StepModel

T = TypeVar("T")


class Room:
    """Each job has what it asks for, and nobody waits; :class:`~ina.controller.slots.memory.Memory`
    does better.
    """

    takes_what_is_left = False
    """Whether a job may get fewer slots than usual, as its tenant's quota leaves them."""

    def sized(self, job: Job, switches: Sequence[str]) -> int:
        """Slots that a new job is to take at each of these; none: at any one.

        Raises :class:`NoRoomError`: it is not its turn, or there are too few.
        """
        return job.spec.slots

    async def wait(
        self, spec: JobSpec, error: NoRoomError, job: Job | None, deadline_s: float
    ) -> None:
        """Until there may be room. ``error``: for what; ``job``: None: there is none yet.

        Raises :class:`NoRoomError`: for long enough, or it does not wait; :class:`QueuedError`:
        its caller has no more time, by the controller's clock.
        """
        raise error

    def granted(self, job: Job) -> None:
        """It has slots for the first time."""

    def known_steps(self, job: Job) -> StepModel | None:
        """What its workers' reports say of its steps; None: not enough yet."""
        return None


async def with_room(
    room: Room,
    spec: JobSpec,
    take: Callable[[], Awaitable[T]],
    victims: Callable[[], Sequence[Job]],
    push_out: Callable[[Job, str], Awaitable[None]],
    *,
    job: Job | None = None,
    deadline_s: float = float("inf"),
) -> T:
    """What ``take`` returns, once it finds room for a job.

    Until then those that ``victims`` names are pushed out for it; where that is nobody, it waits.
    ``job``, ``deadline_s``: as of :meth:`Room.wait`. Raises what all these raise.
    """
    while True:
        try:
            return await take()
        except NoRoomError as error:
            # Nobody's end makes room in a quota.
            found = () if isinstance(error, QuotaError) else victims()
            if not found:
                await room.wait(spec, error, job, deadline_s)
            for victim in found:
                await push_out(victim, spec.name)
