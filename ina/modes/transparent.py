"""Mode ``transparent``: a job's slots are its own, as mode ``pool``'s, and its workers are a ring.

Each SENDs to the next one over RoCEv2 and knows of no switch, which puts sums in place of that.
Lanes go on independently, so no order over all of them is the same on all workers: a worker has two
queue pairs of reliable connections for each lane, one to the next worker, one from the one before
it. Workers behind one port are neighbours, so a ring enters and leaves each port once.

The switch's side is there: the program, the reference, the cases, the rows. No host sends such
packets yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from itertools import chain

from msgspec import structs

from ina.modes import rows
from ina.modes.mode import Mode
from ina.modes.roce import ROCE_DROP_REASONS
from ina.modes.rows import Neighbour, Place
from ina.modes.site import Asking, Site
from ina.p4 import names
from ina.protocol.addresses import mac_of
from ina.protocol.peer import Peer
from ina.protocol.roce import address_in_ring
from ina.protocol.spec import Kind
from ina.tables.values import Entry
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest

FLOW_UDP_PORT = 0xC000
"""Source port of what leaves. A connection's packets stay in order by it."""


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

    switch_keys = ("rings", "bystanders")
    closed_tables = (names.BYSTANDERS,)

    def standing(
        self, own: Iterable[IPv4Address], networks: Mapping[str, Sequence[IPv4Network]]
    ) -> tuple[Entry, ...]:
        """Which networks are rings', and which get other RoCEv2 traffic; nobody sends to it."""
        return (
            *(rows.to_network(names.OWN_ADDRESSES, it, names.OURS) for it in networks["rings"]),
            *(rows.to_network(names.BYSTANDERS, it, names.PASS) for it in networks["bystanders"]),
        )

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

    def lacks(self, whom: Peer) -> str:
        """Queue pairs of both kinds."""
        if whom.ring_pairs and len(whom.ring_pairs) % 2 == 0:
            return ""
        return f"{len(whom.ring_pairs)} queue pairs of a ring, which wants two for each lane"

    def copy_port(self, at: Place, index: int) -> int:
        """On the child's flow: towards the next one."""
        return at.children[next_in_ring(at, index)].port

    def members(self, at: Place, index: int) -> tuple[Entry, ...]:
        """By the flow and its lane: who it is from, whom it is to, and the queue pair there."""
        to = next_in_ring(at, index)
        entry, whom = super().member(at, index), at.children[index]
        ends = (
            ("src_addr", int(ring_address(at, index))),
            ("dst_addr", int(ring_address(at, to))),
        )
        found = []
        for lane, pair in enumerate(_getting(at, to)):
            flow = (*ends, ("dest_qp", pair))
            match = rows.sender(at.part, index, whom, Kind.CONTRIBUTION, flow)
            params = (*entry.params, ("next_port", at.children[to].port), ("queue", lane))
            found.append(structs.replace(entry, match=match, params=params))
        return tuple(found)

    def receivers(self, at: Place, index: int, whom: Neighbour) -> tuple[Entry, ...]:
        """Of the child's flow, lane by lane: as it has sent, to the next one."""
        to = next_in_ring(at, index)
        entry = rows.receiver(at, index, whom)
        ends = (
            ("src_mac", mac_of(ring_address(at, index))),
            ("src_addr", int(ring_address(at, index))),
            ("dst_mac", mac_of(ring_address(at, to))),
            ("dst_addr", int(ring_address(at, to))),
            ("src_port", FLOW_UDP_PORT),
        )
        return tuple(
            structs.replace(
                entry,
                match=(*entry.match, ("queue", lane)),
                params=(*ends, ("dest_qp", pair), ("next_worker", to)),
            )
            for lane, pair in enumerate(_getting(at, to))
        )

    def further(self, at: Place) -> tuple[Entry, ...]:
        """What each worker says to the one before it, who has sent to it."""
        replies = (_replies(at, index) for index in range(len(at.children)))
        return tuple(chain.from_iterable(replies))


def ring_of(at: Place) -> tuple[int, ...]:
    """Indices of children as they follow each other: port by port."""
    return tuple(sorted(range(len(at.children)), key=lambda index: at.children[index].port))


def next_in_ring(at: Place, index: int) -> int:
    """The index of the child that a child sends to; of one alone, its own."""
    ring = ring_of(at)
    return ring[(ring.index(index) + 1) % len(ring)]


def ring_address(at: Place, index: int) -> IPv4Address:
    """A child's, in its job's ring."""
    assert at.rings is not None  # a switch with this program has one
    return address_in_ring(at.rings, at.part.number, index)


def _getting(at: Place, index: int) -> tuple[int, ...]:
    """A child's queue pairs that get from the one before, by lane."""
    pairs = at.children[index].peer.ring_pairs
    return pairs[len(pairs) // 2 :]


def _replies(at: Place, index: int) -> Iterator[Entry]:
    """To the child with this index, from the next one."""
    by = next_in_ring(at, index)
    to, whom = ring_address(at, index), ring_address(at, by)
    pairs = at.children[index].peer.ring_pairs
    for pair in pairs[: len(pairs) // 2]:
        match = (
            ("ingress_port", at.children[by].port),
            ("src_addr", int(whom)),
            ("dst_addr", int(to)),
            ("dest_qp", pair),
        )
        params = (
            ("port", at.children[index].port),
            ("src_mac", mac_of(whom)),
            ("dst_mac", mac_of(to)),
            ("job", at.part.number),
        )
        yield Entry(names.REPLIES, match, names.REPLY, params)
