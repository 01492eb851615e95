"""Mode ``roce``: a job's slots are its own, as mode ``pool``'s, and its packets RoCEv2's SENDs.

Each child of a node sends to a queue pair of its own there, by which the node knows it: a NIC
chooses the UDP source port of its packets itself. Its numbers follow from the job's and the
child's (:func:`ina.protocol.roce.switch_qp`). Switches speak so to each other, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import structs

from ina.modes import rows
from ina.modes.mode import Mode
from ina.modes.rows import Neighbour, Place
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.protocol.roce import DROP_ICRC, PARENT_INDEX, switch_qp
from ina.protocol.spec import PARENT, Kind
from ina.tables.values import Entry

ROCE_DROP_REASONS: Mapping[int, str] = MappingProxyType({**Mode.drop_reasons, DROP_ICRC: "icrc"})
"""Of programs that look at ICRC."""
_QUEUE = 0
"""Number of the one queue pair that a child has for each of its jobs at a node."""
_ALONE = 0
"""``segment_mask``: each message is one packet."""


class Roce(Mode):
    """See :class:`Mode` of each."""

    name = names.ROCE
    is_striped = False
    may_change = False
    takes_host_nodes = False
    has_shapes = False
    framing = "rocev2"
    drop_reasons = ROCE_DROP_REASONS

    def runs_on(self, *, program: str, shares_slots: bool) -> bool:
        """Where packets are taken out of SENDs."""
        return program == self.program

    def queue_pair(self, number: int, index: int) -> int:
        """The one that the worker sends to."""
        return switch_qp(number, index)

    def member(self, at: Place, index: int) -> Entry:
        """By the queue pair that the child sends to."""
        entry = super().member(at, index)
        match = _sender(at, index, at.children[index], Kind.CONTRIBUTION, index)
        return structs.replace(entry, match=match, params=(*entry.params, ("queue", _QUEUE)))

    def parent_member(self, at: Place, parent: Neighbour) -> Entry:
        """By the queue pair that the parent sends to."""
        match = _sender(at, at.own_index, parent, Kind.RESULT, PARENT_INDEX)
        return Entry(names.MEMBERS, match, names.ADMIT_PARENT, (("queue", _QUEUE),))

    def receiver(self, at: Place, index: int, whom: Neighbour) -> Entry:
        """Who gets results, or sums, has a queue pair for them."""
        entry = rows.receiver(at, index, whom)
        params = (
            ("dst_mac", whom.peer.mac_address),
            ("dst_addr", int(whom.peer.address)),
            ("src_port", whom.peer.udp_port),
            ("dest_qp", _own_queue_pair(at, index, whom.peer)),
            ("segment_mask", _ALONE),
        )
        return structs.replace(entry, match=(*entry.match, ("queue", _QUEUE)), params=params)


def _sender(
    at: Place, worker: int, whom: Neighbour, kind: Kind, index: int
) -> tuple[tuple[str, int], ...]:
    """``index``: of the queue pair, among this node's for the job."""
    address = ("src_addr", int(whom.peer.address))
    admits = (address, ("dest_qp", switch_qp(at.part.number, index)))
    return rows.sender(at.part, worker, whom, kind, admits)


def _own_queue_pair(at: Place, index: int, whom: Peer) -> int:
    """The neighbour's: a worker has said which; of a node's it follows which."""
    number = at.part.number
    if index == PARENT:
        return switch_qp(number, at.own_index)
    if index >= len(at.node.ranks):
        return switch_qp(number, PARENT_INDEX)
    return whom.queue_pair
