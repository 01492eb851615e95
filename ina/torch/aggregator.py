"""The aggregator that rank 0 runs for its job, where the mode wants one of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ina import modes
from ina.host.aggregator import AggregatorPlace
from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2

if TYPE_CHECKING:
    from ina.switch.aggregator import AggregatorSwitch

_log = logging.getLogger("ina.torch")


class LocalAggregator:
    """Rank 0's (:class:`ina.host.aggregator.OwnAggregator`)."""

    def __init__(self, patience_s: float) -> None:
        self.patience_s = patience_s
        self._switch: AggregatorSwitch | None = None
        self._place: AggregatorPlace | None = None

    def open(self, values: int, own_host: str) -> AggregatorPlace:
        """See :meth:`ina.host.aggregator.OwnAggregator.open`."""
        if self._place is None:
            # Imported here: most workers need no soft switch.
            from ina.switch.aggregator import DOWN_PORT, AggregatorSwitch

            mode = modes.of_aggregators().program
            self._switch = AggregatorSwitch(values, own_host, mode)
            self._place = AggregatorPlace(Peer.at(self._switch.address), DOWN_PORT)
        return self._place

    def program(self, entities: Sequence[bytes], job: int) -> None:
        """See :meth:`ina.host.aggregator.OwnAggregator.program`."""
        assert self._switch is not None
        self._switch.program(entities, job)
        _log.warning(
            "ina: rank 0 runs the job's aggregator at %s:%d: the controller's file lists none",
            *self._switch.address,
        )

    def add_mapping(self, entities: Sequence[bytes], job: int) -> None:
        """See :meth:`ina.host.aggregator.OwnAggregator.add_mapping`."""
        assert self._switch is not None
        self._switch.add_mapping(entities, job)

    def end_change(self, *, is_new_used: bool) -> None:
        """See :meth:`ina.host.aggregator.OwnAggregator.end_change`."""
        if self._switch is not None:
            self._switch.end_change(is_new_used=is_new_used)

    def counts(self) -> pb2.NodeCounts | None:
        """See :meth:`ina.host.aggregator.OwnAggregator.counts`."""
        if self._switch is None:
            return None
        found = self._switch.counts()
        return pb2.NodeCounts(
            **{name: found[name] for name in pb2.NodeCounts.DESCRIPTOR.fields_by_name}
        )

    def close(self) -> None:
        """Ends it; the session has waited for the others."""
        switch, self._switch = self._switch, None
        if switch is not None:
            switch.close()
