"""The aggregator that rank 0 of a job runs in its own process: ``ina.torch.aggregator``'s, virtual.

As a soft switch there has a UDP port of its own, here it has a cable of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address

from finsy.proto import p4r

from ina import modes
from ina.host.aggregator import AggregatorPlace
from ina.p4 import compiled
from ina.protocol.peer import Peer
from ina.protocol.spec import UDP_PORT
from ina.rpc import controller_pb2 as pb2
from ina.sim.fabric import SimSwitch
from ina.switch.pipeline import Pipeline
from ina.switch.two_mappings import TwoMappings
from ina.tables.entities import entities_of
from ina.tables.values import Entry, Group, Item

DOWN_PORT = 1
PATIENCE_S = 60.0
"""How long it goes on, at most, after its rank is done, until the others are, too."""


class OwnAggregator:
    """Of one process; the next one of that rank begins with an empty switch.

    See :class:`ina.host.aggregator.OwnAggregator`.
    """

    patience_s = PATIENCE_S

    def __init__(self, switch: SimSwitch, address: IPv4Address, values: int) -> None:
        self._switch = switch
        self._address = address
        self._values = values
        self._runs: Pipeline | None = None
        self._mappings = TwoMappings[Item](_table_of)

    def open(self, values: int, own_host: str) -> AggregatorPlace:
        """Starts it; may be called again. Returns where it is."""
        if self._runs is None:
            self._runs = self._switch.power_on()
        return AggregatorPlace(Peer(self._address, UDP_PORT), DOWN_PORT)

    def counts(self) -> pb2.NodeCounts | None:
        """Nobody asks for them."""
        return None

    def program(self, entities: Sequence[bytes], job: int) -> None:
        """Inserts the job's entities (p4.v1.Entity); ``job``: its number."""
        self._mappings.begin(job, self._inserted(entities))

    def add_mapping(self, entities: Sequence[bytes], job: int) -> None:
        """See :meth:`ina.host.aggregator.OwnAggregator.add_mapping`."""
        self._mappings.add(job, self._inserted(entities))

    def end_change(self, *, is_new_used: bool) -> None:
        """See :meth:`ina.host.aggregator.OwnAggregator.end_change`."""
        gone = self._mappings.end_change(is_new_used=is_new_used)
        if self._runs is not None:
            self._switch.delete(gone)

    def _inserted(self, entities: Sequence[bytes]) -> list[Item]:
        known = entities_of(compiled(self._values, modes.of_aggregators().program).p4info)
        decoded = (known.decode(p4r.Entity.FromString(data)) for data in entities)
        items = [item for item in decoded if isinstance(item, Entry | Group)]
        self._switch.insert(items)
        return items

    def close(self) -> None:
        """Ends it. Idempotent."""
        if self._runs is not None and self._switch.pipeline is self._runs:
            self._switch.power_off()
        self._runs = None


def _table_of(item: Item) -> str:
    return "" if isinstance(item, Group) else item.table
