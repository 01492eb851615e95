"""What a mode of jobs is: how they have switches' slots, and what makes their results.

Every mode is one object of a subclass of :class:`Mode`, in a file of its own, in the list of
:mod:`ina.modes`. The controller, the soft switch, the tools that test them and the command line ask
the object; none of them knows which it is. What :class:`Mode` itself says is that of jobs with
slots of their own: a mode says in what it differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from types import MappingProxyType
from typing import Any

from ina.modes import rows
from ina.modes.rows import Neighbour, Place
from ina.modes.site import Asking, Site
from ina.p4 import names
from ina.p4.catalogue import Capabilities
from ina.protocol.ring import Ring
from ina.protocol.slot_model import POOL_STICKY_FLAGS
from ina.protocol.spec import OWNER_BITS, DropReason, Flag
from ina.tables.values import Entry
from ina.trees.endpoint import Endpoint
from ina.trees.forest import Forest
from ina.trees.mapping import Part
from ina.trees.tree import Node, Tree


class Mode:
    """Of jobs. It has no state: one object serves all controllers of a process."""

    name: str
    """What configurations, the store and the wire of the controller call it."""

    @property
    def program(self) -> str:
        """The program that a switch runs for its jobs, where nobody says which: of :mod:`ina.p4`.

        It is called the same where it is made for the mode.
        """
        return self.name

    # -- what policies may do with its jobs --

    is_sized = True
    """Whether a job's slots on switches are its own. Then memory policies say how many, tenants'
    quotas count them, jobs wait for them and end others for them; else there is always room, and
    quotas count what a job may claim of slots that jobs share."""
    is_striped = True
    """Whether a job's lanes may be dealt to several trees of the placement's, and moved whenever
    that pays. Else it is summed over the first of them, and moved off what is down alone."""
    may_change = True
    """Whether a running job may get another mapping: other slots, other trees, another mode."""
    takes_host_nodes = True
    """Whether ranks of a host may be summed there, by a node in a process of theirs."""
    needs_aggregator = False
    """Whether its results may be made above the switches of the placement's tree: by one of the
    controller's aggregators, or where none is configured, by one in a process of the job."""

    # -- what a worker of its jobs does differently --

    worker: Mapping[str, Any] = MappingProxyType({})
    """Fields of the core's ``WorkerConfig``: values, so that the core knows of no modes."""
    refuses: Mapping[str, str] = MappingProxyType({})
    """Which options a worker cannot have, and why, for people: ``wire`` (packed words), ``verify``
    (verified sums), ``recoverable`` (going on without the switch)."""

    # -- what a switch is to it --

    switch_keys: tuple[str, ...] = ()
    """Keys of ``[switch]`` that say something of switches with its program alone."""

    def slots_shared(self, asked: int) -> int:
        """Of a switch with its program: how many slots, the last ones, jobs share.

        ``asked``: by the configuration; 0: it does not say.
        """
        return 0

    def is_written_to(self, can: Capabilities) -> bool:
        """Whether the controller writes such rows as a build of its program takes that can this."""
        return True

    def runs_on(self, *, program: str, shares_slots: bool) -> bool:
        """Whether a switch can sum its jobs that takes packets of their framing.

        ``program``: the mode of the one that it runs. ``shares_slots``: it has some that jobs
        share.
        """
        return True

    def program_at(self, node: Node) -> str:
        """The program of a node of its jobs' trees that is in a process of theirs."""
        return names.DEFAULT_MODE

    # -- what its jobs' trees are --

    def forest(self, asking: Asking, over: Forest, site: Site) -> Forest:
        """The trees of a job that the placement has found these for; they all run it.

        Their nodes say where its slots are shared with other jobs, and whose root makes results.
        Raises :class:`JobRequestError`: it cannot be summed over these.
        """
        return over

    def bare(self, over: Forest, site: Site) -> Forest:
        """What :meth:`forest` was given for this one."""
        return over

    def lacks_shapes(self, over: Forest) -> str:
        """Why all rounds of a job over these trees are sums, for people; empty: they need not be.

        Its other collectives go beside the network then.
        """
        if not self.has_shapes:
            return f"mode {self.name!r} has sums alone"
        for node in (node for tree in over for node in tree if not node.expands):
            return f"switch {node.switch!r} has no room for values behind a header that comes alone"
        longest = max(tree.path_bits for tree in over)
        if longest <= OWNER_BITS:
            return ""
        return f"the longest path of its trees takes {longest} bits, of {OWNER_BITS} that there are"

    def owners(self, tree: Tree) -> tuple[int, ...]:
        """By rank, what packets of its chunks call it, 12 bits; empty: there is no such thing."""
        return tree.owners if self.has_shapes else ()

    def may_top(self, asking: Asking, switch: str, site: Site) -> bool:
        """Whether a switch may be the root of the placement's tree, as things are."""
        return True

    def levels_above(self, switch: str, site: Site) -> int:
        """Of nodes above a switch that is that root."""
        return 0

    # -- what it writes at a node of a job's trees --

    shared_admissions: tuple[str, ...] = ()
    """Actions that let jobs in at slots that are other jobs', too."""

    def admission(self, at: Place) -> Entry:
        """Lets the job's packets in."""
        if at.parent is None:
            return rows.admission(at, names.ADMIT_JOB)
        return rows.admission(at, names.ADMIT_INNER_JOB, **at.above(own_bit=1 << at.own_index))

    def member(self, at: Place, index: int) -> Entry:
        """Lets the packets of a child in, by its index."""
        return rows.member(at, index, names.ADMIT_MEMBER, worker_bit=at.bits[index])

    def members(self, at: Place, index: int) -> tuple[Entry, ...]:
        """All that do: one for each of its connections to the node."""
        return (self.member(at, index),)

    def receivers(self, at: Place, index: int, whom: Neighbour) -> tuple[Entry, ...]:
        """The same of :meth:`receiver`."""
        return (self.receiver(at, index, whom),)

    def parent_member(self, at: Place, parent: Neighbour) -> Entry:
        """Lets the parent's results in."""
        return rows.parent_member(at, parent)

    def receiver(self, at: Place, index: int, whom: Neighbour) -> Entry:
        """Where a child gets results, by its index, or the parent sums (``PARENT``)."""
        return rows.receiver(at, index, whom)

    def copy_port(self, at: Place, index: int) -> int:
        """The node's port by which the copy of a result leaves that has a child's index."""
        return at.children[index].port

    closed_tables: tuple[str, ...] = ()
    """Of its program: of rows that are no job's, and let something through. None may be there that
    the configuration does not have."""

    def passing(self, bystanders: Sequence[str]) -> tuple[Entry, ...]:
        """Rows of those; ``bystanders``: networks, of ``[switch]``."""
        return ()

    def own_keys(self, addresses: Sequence[IPv4Address], rings: str) -> tuple[int | str, ...]:
        """Keys of the table of what is for a switch itself.

        ``addresses``: at which it is reached; ``rings``: of ``[switch]``.
        """
        return tuple(map(int, addresses))

    def ring(self, part: Part, workers: Mapping[int, Endpoint], rank: int) -> Ring | None:
        """A worker's place among those that send to each other; None: they send to a switch.

        ``workers``: by rank, all.
        """
        return None

    def further(self, at: Place) -> tuple[Entry, ...]:
        """Rows of other tables that its program has besides, which are there before the job is."""
        return ()

    # -- what is around its packets --

    has_shapes = True
    """Whether rounds of its jobs may have another shape than SUM, where their trees have room."""
    has_trees = True
    """Whether its program's switches may sum for one another, and results be shared by workers."""

    framing = "udp"
    """What its program's packets have around ina's header and values: ``udp``, nothing; ``rocev2``
    or ``ring``, RoCEv2 to a switch and past it. A switch takes packets of one framing, that of its
    program, and workers have links for each (``ina.host.link``)."""

    drop_reasons: Mapping[int, str] = MappingProxyType({it: it.name.lower() for it in DropReason})
    """Indices of its program's counter of drops, and what people call them."""

    def queue_pair(self, number: int, index: int) -> int:
        """Of a node's, the queue pair that a worker's packets go to; 0: they go to a UDP port.

        ``number``: of the job there; ``index``: of the worker among the node's children.
        """
        return 0

    # -- what testing it needs to know --

    gathers: Flag = POOL_STICKY_FLAGS
    """The flags that slots collect, in its program."""
    fills_packets = False
    """Whether its program makes whole packets of some that came without values in sums, too: of a
    last word alone, or where a packet puts out another's sum. Rounds of other shapes always may."""
    is_stream = False
    """Whether the last word of its jobs' packets is a block's number. Then its program knows of
    contributions with that word alone, and floats have one exponent for a lane's part of a tensor.
    """
