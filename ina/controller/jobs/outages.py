"""Links and switches of a fabric that somebody has said are down: an operator, a switch's ports."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ina.controller.jobs.events import EventBus
from ina.controller.jobs.record import Record
from ina.fabric.errors import FabricError
from ina.fabric.graph import Fabric
from ina.fabric.outages import Down, Outages
from ina.rpc import controller_pb2 as pb2
from ina.trees.errors import JobRequestError

_log = logging.getLogger(__name__)


class StoredOutages:
    """Of one fabric: what was taken out for repair stays out."""

    def __init__(
        self,
        fabric: Fabric,
        record: Record,
        events: EventBus,
        stored: Iterable[str] = (),
    ) -> None:
        """``stored``: what a former controller left; names that there are no more are dropped."""
        self.fabric = fabric
        self._outages = Outages(fabric.switches, [it.switches for it in fabric.links], stored)
        self._record = record
        self._events = events
        self.unreached: set[str] = set()
        """Switches that were lost while jobs ran; they are not stored."""

    @property
    def names(self) -> list[str]:
        """Switches, and links as ``leaf1-spine1``."""
        return self._outages.names

    @property
    def down(self) -> Down:
        """The same, for routing."""
        return self._outages.down

    @property
    def away(self) -> Down:
        """What running jobs are moved off: that, and switches that are not reached."""
        said = self.down
        return Down(said.switches | self.unreached, said.links)

    def put(self, name: str, *, is_down: bool) -> bool:
        """Says that a link or a switch is down, or is not any more; returns whether that is news.

        Raises :class:`JobRequestError`: there is none of this name; :class:`StoreError`.
        """
        try:
            outage = self._outages.outage(name, is_down=is_down)
        except FabricError as error:
            raise JobRequestError(str(error)) from None
        if outage is None:
            return False
        self._record.save_down(self._outages.names_with(outage))
        self._outages.put(outage)
        _log.warning("fabric: %s", outage)
        self._events.publish(pb2.JobEvent(kind=pb2.FABRIC_CHANGED, reason=str(outage)))
        return True
