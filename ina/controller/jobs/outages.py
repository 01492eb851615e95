"""Links and switches of a fabric that somebody has said are down: an operator, a switch's ports."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ina.controller.jobs.events import EventBus
from ina.controller.jobs.record import Record
from ina.controller.routing.from_fabric import Down
from ina.fabric.graph import Fabric
from ina.rpc import controller_pb2 as pb2
from ina.trees.errors import JobRequestError

_log = logging.getLogger(__name__)


class Outages:
    """Of one fabric. They are stored: what was taken out for repair stays out."""

    def __init__(
        self,
        fabric: Fabric,
        record: Record,
        events: EventBus,
        stored: Iterable[str] = (),
    ) -> None:
        """``stored``: what a former controller left; names that there are no more are dropped."""
        self._fabric = fabric
        self._record = record
        self._events = events
        self._names = {name for name in stored if name in fabric or self._link(name)}
        self.unreached: set[str] = set()
        """Switches that were lost while jobs ran; they are not stored."""

    @property
    def names(self) -> list[str]:
        """Switches, and links as ``leaf1-spine1``."""
        return sorted(self._names)

    @property
    def down(self) -> Down:
        """The same, for routing."""
        links = (self._link(name) for name in self._names if name not in self._fabric)
        return Down(
            frozenset(name for name in self._names if name in self._fabric),
            frozenset(frozenset(ends) for ends in links if ends is not None),
        )

    @property
    def away(self) -> Down:
        """What running jobs are moved off: that, and switches that are not reached."""
        said = self.down
        return Down(said.switches | self.unreached, said.links)

    def put(self, name: str, *, is_down: bool) -> bool:
        """Says that a link or a switch is down, or is not any more; returns whether that is news.

        Raises :class:`JobRequestError`: there is none of this name; :class:`StoreError`.
        """
        if name not in self._fabric:
            ends = self._link(name)
            if ends is None:
                raise JobRequestError(f"no switch or link is called {name!r}")
            name = "-".join(ends)
        if (name in self._names) == is_down:
            return False
        names = self._names | {name} if is_down else self._names - {name}
        self._record.save_down(names)
        self._names = names
        reason = f"{name} is {'down' if is_down else 'up again'}"
        _log.warning("fabric: %s", reason)
        self._events.publish(pb2.JobEvent(kind=pb2.FABRIC_CHANGED, reason=reason))
        return True

    def _link(self, name: str) -> tuple[str, str] | None:
        """Its ends, in the file's order. Names of switches may have a dash themselves."""
        for link in self._fabric.links:
            one, other = link.switches
            if name in (f"{one}-{other}", f"{other}-{one}"):
                return link.switches
        return None
