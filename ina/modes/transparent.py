"""Mode ``transparent``: a job's slots are its own, as mode ``pool``'s, and its workers are a ring.

Each SENDs to the next one over RoCEv2 and knows of no switch, which puts sums in place of that. A
worker has two queue pairs for each lane of its window, of a reliable connection each: one to the
next worker, one from the one before it. Lanes go on independently of each other, so no order over
all of them is the same on all workers, and a lane's is. Workers behind one port are neighbours, so
a ring enters and leaves each port once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address

from ina.modes import rows
from ina.modes.mode import Mode
from ina.modes.roce import ROCE_DROP_REASONS
from ina.modes.rows import Neighbour, Place
from ina.modes.site import Asking, Site
from ina.p4 import names
from ina.protocol.addresses import mac_of
from ina.protocol.ring import Ring
from ina.protocol.roce import ring_psn
from ina.protocol.spec import Kind
from ina.tables.values import Entry
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest
from ina.trees.mapping import Part

_ALONE = 0
"""``segment_mask``: each message is one packet."""


class Transparent(Mode):
    """See :class:`Mode` of each."""

    name = names.TRANSPARENT
    has_shapes = False
    framing = "ring"
    drop_reasons = ROCE_DROP_REASONS
    switch_keys = ("rings", "bystanders")
    closed_tables = (names.BYSTANDERS,)
    has_trees = False
    is_striped = False
    may_change = False
    takes_host_nodes = False

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

    def members(self, at: Place, index: int) -> tuple[Entry, ...]:
        """By the flow's connections: who each is from, whom it is to, and the queue pair there."""
        whom, to = at.children[index], at.children[next_in_ring(at, index)]
        found = []
        for lane, queue_pair in enumerate(_getting(to)):
            flow = (
                ("src_addr", int(whom.peer.address)),
                ("dst_addr", int(to.peer.address)),
                ("dest_qp", queue_pair),
            )
            match = rows.sender(at.part, index, whom, Kind.CONTRIBUTION, flow)
            params = (
                ("worker_bit", at.bits[index]),
                ("next_port", to.port),
                ("queue", lane),
            )
            found.append(Entry(names.MEMBERS, match, names.ADMIT_MEMBER, params))
        return tuple(found)

    def receivers(self, at: Place, index: int, whom: Neighbour) -> tuple[Entry, ...]:
        """Of the child's flow: as it has sent, to the next one.

        The switch is at a MAC address for each worker's place in the ring, which follows from the
        worker's address. So whoever learns where MAC addresses are learns it rightly.
        """
        to = next_in_ring(at, index)
        peer = at.children[to].peer
        lane_bits = len(_getting(at.children[to])).bit_length() - 1
        found = []
        for lane, queue_pair in enumerate(_getting(at.children[to])):
            params = (
                ("src_mac", mac_of(whom.peer.address)),
                ("src_addr", int(whom.peer.address)),
                ("dst_mac", peer.mac_address),
                ("dst_addr", int(peer.address)),
                ("src_port", whom.peer.udp_port),
                ("dest_qp", queue_pair),
                ("first_psn", ring_psn(at.part.epoch)),
                ("lane_shift", lane_bits),
                ("segment_mask", _ALONE),
                ("next_worker", to),
            )
            match = (("job", at.part.number), ("worker", index), ("queue", lane))
            found.append(Entry(names.RECEIVERS, match, names.ADDRESS, params))
        return tuple(found)

    def passing(self, bystanders: Sequence[str]) -> tuple[Entry, ...]:
        """Who gets other RoCEv2 traffic."""
        return tuple(
            Entry(names.BYSTANDERS, (("dst_addr", network),), names.PASS) for network in bystanders
        )

    def own_keys(self, addresses: Sequence[IPv4Address], rings: str) -> tuple[int | str, ...]:
        """Workers' addresses in their rings; the switch is at none that they know."""
        return (rings,)

    def ring(self, part: Part, workers: Mapping[int, Endpoint], rank: int) -> Ring | None:
        """Port by port, as the rows have it."""
        (node,) = part.tree
        order = _by_port([node.port_of(it, workers[it].switch_port) for it in node.ranks])
        place = order.index(node.index_of_rank(rank))
        own, following, before = (
            workers[node.ranks[order[(place + step) % len(order)]]].peer for step in (0, 1, -1)
        )
        half = len(own.ring_pairs) // 2
        return Ring(
            own.address,
            following.address,
            before.address,
            following.ring_pairs[half:],
            before.ring_pairs[:half],
            ring_psn(part.epoch),
        )

    def further(self, at: Place) -> tuple[Entry, ...]:
        """What each worker says to the one before it, who has sent to it."""
        return tuple(row for index in range(len(at.children)) for row in _replies(at, index))


def _getting(whom: Neighbour) -> tuple[int, ...]:
    """By lane: a worker's queue pairs from the one before it."""
    pairs = whom.peer.ring_pairs
    return pairs[len(pairs) // 2 :]


def _sending(whom: Neighbour) -> tuple[int, ...]:
    """By lane: those to the next one."""
    pairs = whom.peer.ring_pairs
    return pairs[: len(pairs) // 2]


def ring_of(at: Place) -> tuple[int, ...]:
    """Indices of children as they follow each other: port by port."""
    return _by_port([child.port for child in at.children])


def _by_port(ports: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(ports)), key=ports.__getitem__))


def next_in_ring(at: Place, index: int) -> int:
    """The index of the child that a child sends to; of one alone, its own."""
    ring = ring_of(at)
    return ring[(ring.index(index) + 1) % len(ring)]


def _replies(at: Place, index: int) -> tuple[Entry, ...]:
    """To the child with this index, from the next one."""
    to, whom = at.children[index], at.children[next_in_ring(at, index)]
    params = (
        ("port", to.port),
        ("src_mac", mac_of(whom.peer.address)),
        ("dst_mac", to.peer.mac_address),
        ("job", at.part.number),
    )
    ends = (
        ("ingress_port", whom.port),
        ("src_addr", int(whom.peer.address)),
        ("dst_addr", int(to.peer.address)),
    )
    return tuple(
        Entry(names.REPLIES, (*ends, ("dest_qp", queue_pair)), names.REPLY, params)
        for queue_pair in _sending(to)
    )
