"""On which switch a job is summed: a function a policy. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ina.controller.errors import NoRoomError
from ina.controller.switches.capacity import Capacity

Placement = Callable[[str, int, Mapping[str, Capacity]], str]
"""Names a switch for a job (its name, and the slots that it asks for; 0: the default).

Raises :class:`NoRoomError`, with the numbers; :class:`JobRequestError`: none ever grants so many.
"""


def first_with_room(job: str, slots: int, switches: Mapping[str, Capacity]) -> str:
    """The first in the order of the configuration, wherever the job's workers are.

    While none can be reached, the first of all: its workers hear why when they join.
    """
    reached = [name for name, capacity in switches.items() if capacity.is_reached()]
    candidates = reached or list(switches)
    if len(candidates) == 1:
        return candidates[0]  # whether it has room, is found when its slots are taken
    for name in candidates:
        if switches[name].memory.fits(job, slots, []):
            return name
    whys = (f"switch {name}: {switches[name].memory.why_full(job, slots)}" for name in candidates)
    raise NoRoomError(f"job {job!r}: no slots left: {'; '.join(whys)}")
