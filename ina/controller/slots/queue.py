"""Jobs that wait for slots, in the order of a memory policy. No I/O; its clock is passed in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ina.controller.memory.demand import Demand

KEPT_S = 10.0
"""A job whose workers have hung up keeps its place for so long: they may ask again."""

Order = Callable[[Sequence[Demand]], list[Demand]]


@dataclass(eq=False)
class Waiting:
    """A job in the queue."""

    demand: Demand
    ends_s: float
    """When it gives up."""
    since_s: float
    asked_s: float
    """When one of its workers asked last."""
    callers: int = 0
    stands_aside: bool = False
    """What it waits for is not slots of the switch: others need not wait for it."""
    gains: bool = True
    """It may begin when others shrink."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class SlotQueue:
    """Who is first in it is served first: nobody overtakes, also who needs less and would fit."""

    def __init__(self, order: Order, clock: Callable[[], float]) -> None:
        self._order = order
        self._clock = clock
        self._waiting: dict[str, Waiting] = {}

    def __len__(self) -> int:
        self._forget()
        return len(self._waiting)

    def __contains__(self, name: str) -> bool:
        self._forget()
        return name in self._waiting

    def enter(self, demand: Demand, queue_s: float) -> Waiting:
        """A job's place, which it keeps when its workers ask again."""
        self._forget()
        now_s = self._clock()
        place = self._waiting.get(demand.name)
        if place is None:
            place = self._waiting[demand.name] = Waiting(demand, now_s + queue_s, now_s, now_s)
        place.asked_s = now_s
        return place

    def ahead(self, demand: Demand) -> list[str]:
        """Who is served before this job, first who is first; it may be in the queue or not."""
        self._forget()
        place = self._waiting.get(demand.name)
        mine = demand if place is None else place.demand
        others = (
            it.demand
            for name, it in self._waiting.items()
            if name != demand.name and not it.stands_aside
        )
        names = [it.name for it in self._order([*others, mine])]
        return names[: names.index(demand.name)]

    def demands(self) -> list[Demand]:
        """Of those for which others may shrink."""
        self._forget()
        return [it.demand for it in self._waiting.values() if it.gains]

    def leave(self, name: str) -> None:
        """A job has its slots, or gives up. The next one may be served."""
        if self._waiting.pop(name, None) is not None:
            self.wake()

    def wake(self) -> None:
        """Slots may be free: all that wait look again."""
        for place in self._waiting.values():
            place.woken.set()

    def _forget(self) -> None:
        now_s = self._clock()
        for name, place in list(self._waiting.items()):
            if not place.callers and now_s - place.asked_s > KEPT_S:
                del self._waiting[name]
