"""The aggregator of a job whose mode wants one, in the process of its rank 0.

There its results are made where the controller has no aggregator. It is a soft switch, which this
library does not know: who runs workers, as ``ina.torch`` does, brings it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2


@dataclass(frozen=True)
class AggregatorPlace:
    """Where it is."""

    peer: Peer  # what switches see
    port: int  # its own port towards them


class OwnAggregator(Protocol):
    """Rank 0's."""

    patience_s: float
    """How long it goes on, at most, after its rank is done, until the others are, too."""

    def open(self, values: int, own_host: str) -> AggregatorPlace:
        """Start it: `values` int32 a packet; `own_host`: IPv4 address of this host towards the
        switch. May be called again, with the same. Raises InaError.
        """

    def program(self, entities: Sequence[bytes], job: int) -> None:
        """Insert the job's entities (p4.v1.Entity); `job`: its number. Raises InaError."""

    def add_mapping(self, entities: Sequence[bytes], job: int) -> None:
        """Insert those of the mapping that the job changes to, beside what is there.

        None where that one's results are made elsewhere. `job`: its number.
        """

    def end_change(self, *, is_new_used: bool) -> None:
        """Take out those of the mapping that is not used any more, if one was added."""

    def counts(self) -> pb2.NodeCounts | None:
        """What it has counted of the job; None: it has none."""
