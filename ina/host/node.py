"""The node on a worker's own host: a soft switch that adds up what this host's ranks send.

Ranks reach it over shared memory; one contribution goes up, and one result comes down. It runs in
the process of the lowest of them. Who finds out which ranks share a host, as ``ina.torch`` does,
gives each rank's session its part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2


@dataclass(frozen=True)
class NodePlace:
    """Where a host's node is."""

    rank: int  # in whose process it runs: the lowest of those that send to it
    shm: str  # abstract Unix address where its ranks attach, "@..."
    peer: Peer  # what the switch above sees as the node
    uplink_port: int  # the node's own port towards that switch


class NodeOfHost(Protocol):
    """One rank's part in its host's node."""

    @property
    def contributions(self) -> int:
        """How many contributions to a sum of the whole job reach switches: one of each host."""

    def open(
        self, values: int, slots: int, own_host: str, switch_host: str, timeout_s: float
    ) -> NodePlace | None:
        """Start it, or wait for the rank that does; None: there is none, each rank sends its own.

        `values` int32 a packet; `slots` of the job, both versions; `own_host`, `switch_host`: IPv4
        addresses of this host and of the switch. May be called again, with the same. Raises
        TransportError.
        """

    def program(self, entities: Sequence[bytes], job: int) -> None:
        """Insert the job's entities (p4.v1.Entity), in the rank that runs it; `job`: its number.

        Raises InaError.
        """

    def set_dscp(self, dscp: int) -> None:
        """Have what goes up carry it, in the rank that runs it: 0 to 63."""

    def add_mapping(self, entities: Sequence[bytes], job: int) -> None:
        """Insert those of the mapping that the job changes to, beside what is there.

        `job`: its number.
        """

    def end_change(self, *, is_new_used: bool) -> None:
        """Take out those of the mapping that is not used any more, if any were added."""

    def counts(self) -> pb2.NodeCounts | None:
        """What it has counted of the job; None: another rank runs it, or nobody."""
