"""Mode ``transparent``: a job's slots are its own, as mode ``pool``'s, and its workers are a ring.

Each SENDs to the next one over RoCEv2 and knows of no switch, which puts sums in place of that. A
worker has two queue pairs of a reliable connection each: one to the next worker, one from the one
before it. Workers behind one port are neighbours, so a ring enters and leaves each port once.

The switch's side is there: the program, the reference, the cases, the rows of a job. No controller
writes them yet, for no host sends such packets.
"""

from __future__ import annotations

from msgspec import structs

from ina.modes import rows
from ina.modes.mode import Mode
from ina.modes.roce import ROCE_DROP_REASONS
from ina.modes.rows import Neighbour, Place
from ina.modes.site import Asking, Site
from ina.p4 import names
from ina.p4.catalogue import Capabilities
from ina.protocol.addresses import mac_of
from ina.protocol.roce import ring_psn
from ina.protocol.spec import Kind
from ina.tables.values import Entry
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest

_ALONE = 0
"""``segment_mask``: each message is one packet."""


class Transparent(Mode):
    """See :class:`Mode` of each."""

    name = names.TRANSPARENT
    framing = "ring"
    drop_reasons = ROCE_DROP_REASONS
    has_hosts = False
    has_trees = False
    is_striped = False
    may_change = False
    takes_host_nodes = False

    def is_written_to(self, can: Capabilities) -> bool:
        """Not yet: nobody configures which networks are rings'."""
        return False

    def runs_on(self, *, program: str, shares_slots: bool) -> bool:
        """Where flows are taken apart."""
        return program == self.program

    def forest(self, asking: Asking, over: Forest, site: Site) -> Forest:
        """One switch: another below it would have to acknowledge what is summed above."""
        switches = [node.switch for tree in over for node in tree]
        if len(switches) > 1:
            raise JobRequestError(
                f"job {asking.job!r}: mode {self.name!r} sums at one switch that all workers are"
                f" behind, and these want {len(switches)}: {', '.join(switches)}"
            )
        return over

    def copy_port(self, at: Place, index: int) -> int:
        """On the child's flow: towards the next one."""
        return at.children[next_in_ring(at, index)].port

    def member(self, at: Place, index: int) -> Entry:
        """By the flow: who it is from, whom it is to, and the queue pair there."""
        whom, to = at.children[index], at.children[next_in_ring(at, index)]
        entry = super().member(at, index)
        flow = (
            ("src_addr", int(whom.peer.address)),
            ("dst_addr", int(to.peer.address)),
            ("dest_qp", to.peer.queue_pair),
        )
        match = rows.sender(at.part, index, whom, Kind.CONTRIBUTION, flow)
        return structs.replace(entry, match=match, params=(*entry.params, ("next_port", to.port)))

    def receiver(self, at: Place, index: int, whom: Neighbour) -> Entry:
        """Of the child's flow: as it has sent, to the next one.

        The switch is at a MAC address for each worker's place in the ring, which follows from the
        worker's address. So whoever learns where MAC addresses are learns it rightly.
        """
        entry = rows.receiver(at, index, whom)
        to = next_in_ring(at, index)
        peer = at.children[to].peer
        params = (
            ("src_mac", mac_of(whom.peer.address)),
            ("src_addr", int(whom.peer.address)),
            ("dst_mac", peer.mac_address),
            ("dst_addr", int(peer.address)),
            ("src_port", whom.peer.udp_port),
            ("dest_qp", peer.queue_pair),
            ("first_psn", ring_psn(at.part.epoch)),
            ("segment_mask", _ALONE),
            ("next_worker", to),
        )
        return structs.replace(entry, params=params)

    def further(self, at: Place) -> tuple[Entry, ...]:
        """What each worker says to the one before it, who has sent to it."""
        return tuple(_reply(at, index) for index in range(len(at.children)))


def ring_of(at: Place) -> tuple[int, ...]:
    """Indices of children as they follow each other: port by port."""
    return tuple(sorted(range(len(at.children)), key=lambda index: at.children[index].port))


def next_in_ring(at: Place, index: int) -> int:
    """The index of the child that a child sends to; of one alone, its own."""
    ring = ring_of(at)
    return ring[(ring.index(index) + 1) % len(ring)]


def _reply(at: Place, index: int) -> Entry:
    """To the child with this index, from the next one."""
    to, whom = at.children[index], at.children[next_in_ring(at, index)]
    match = (
        ("ingress_port", whom.port),
        ("src_addr", int(whom.peer.address)),
        ("dst_addr", int(to.peer.address)),
        ("dest_qp", to.peer.sending_queue_pair),
    )
    params = (
        ("port", to.port),
        ("src_mac", mac_of(whom.peer.address)),
        ("dst_mac", to.peer.mac_address),
        ("job", at.part.number),
    )
    return Entry(names.REPLIES, match, names.REPLY, params)
