"""What a job needs on one of its switches, or on a node that a worker runs on its host, as table
entries and a multicast group. Pure.

``JobPlan.stages`` is the order of installing. Members come last: until a neighbour's member entry
is there, none of its packets reaches a slot. Removal goes backwards, so members go first. Between
the switches of a tree the order does not matter: one of them that has nothing of the job yet
refuses, and resends mend it.

A result goes to each child, or once to all workers behind one port of the switch that listen to the
job's IP multicast address: one replica for them, whose ``worker`` is ``ALL_WORKERS``, and whose
receiver entry has that address. Every worker has a receiver entry of its own all the same: a
finished sum that is sent again goes to one worker alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from ina import modes
from ina.controller.job import Job
from ina.modes import rows
from ina.p4 import compiled, names
from ina.protocol.addresses import SHM_SWITCH
from ina.protocol.peer import Peer
from ina.protocol.spec import ALL_WORKERS, PARENT
from ina.tables.entities import entities_of
from ina.tables.values import Entry, Group, Item
from ina.trees.endpoint import Endpoint
from ina.trees.mapping import Mapping as JobMapping
from ina.trees.mapping import Part
from ina.trees.tree import HostNode, Node

FIRST_GROUP = 0x4000
"""Multicast group of job 0. Groups 0x4000..0x40ff are the controller's, others are left alone."""

MARK_JOB = 0
"""No job has this number: its job table entry keeps the last epoch issued."""

_NO_SWITCHES: Mapping[str, Peer] = {}
_NO_ROUTERS: Mapping[int, int] = {}


@dataclass(frozen=True)
class JobPlan:
    """A job's entries on one switch, by stage; within a stage the order does not matter."""

    stages: tuple[tuple[Item, ...], ...]
    endpoints: Mapping[int, Endpoint]
    """By rank, in the order of their indices: where the workers are that send to this switch."""
    members: Mapping[int, tuple[Entry, ...]]
    """By rank: its member entries, one for each tree in which it sends to this switch."""
    switches: tuple[Entry, ...]
    """The member entries of other switches: those below, and the one above."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """The copies of each result, by tree."""
        return tuple(item for item in self.stages[0] if isinstance(item, Group))

    def beside(self, other: JobPlan) -> JobPlan:
        """What of it is not also the other's: two mappings of a job share what has no epoch."""
        kept = set(other.items)
        stages = (tuple(item for item in stage if item not in kept) for stage in self.stages)
        return replace(self, stages=tuple(stages))

    @property
    def items(self) -> tuple[Item, ...]:
        """All of it, in the order of installing."""
        return tuple(item for stage in self.stages for item in stage)


def plan_job(
    job: Job,
    switch: str,
    addresses: Mapping[str, Peer] = _NO_SWITCHES,
    *,
    age_us: int = 0,
    by: JobMapping | None = None,
    routers: Mapping[int, int] = _NO_ROUTERS,
) -> JobPlan:
    """Everything that a complete job needs on one node of its trees: a switch's name, or a host's.

    It must have its trees, its slots, all its members and its epoch. ``addresses``: of the other
    switches of its trees, by name. ``age_us``: of a slot that the node shares, until it may be
    another job's. ``by``: another mapping than the one it has. ``routers``: by port, the MAC
    address of the switch there, where it passes on by IP address what is sent to it.
    """
    by = by or job.mapping
    here = [part for part in by.parts if switch in part.tree]
    plans = [_plan(job, by, part, switch, addresses, routers, age_us) for part in here]
    stages = zip(*(plan.stages for plan in plans), strict=True)
    members: dict[int, tuple[Entry, ...]] = {}
    for plan in plans:
        for rank, rows_of_rank in plan.members.items():
            members[rank] = members.get(rank, ()) + rows_of_rank
    return JobPlan(
        tuple(tuple(item for stage in them for item in stage) for them in stages),
        {rank: at for plan in plans for rank, at in plan.endpoints.items()},
        members,
        tuple(row for plan in plans for row in plan.switches),
    )


def _plan(
    job: Job,
    by: JobMapping,
    part: Part,
    switch: str,
    addresses: Mapping[str, Peer],
    routers: Mapping[int, int],
    age_us: int,
) -> JobPlan:
    """Of one tree.

    Results of several do not come by IP multicast, which reaches whoever is behind the workers'
    tops of racks alone.
    """
    tree, node = part.tree, part.tree[switch]
    endpoints = {rank: job.members[rank] for rank in node.ranks}
    if len(by.forest) > 1 or node.rank_ports:
        endpoints = {rank: replace(at, results_group=None) for rank, at in endpoints.items()}
    children = [
        *(
            rows.Neighbour(at.peer, node.port_of(rank, at.switch_port))
            for rank, at in endpoints.items()
        ),
        *(
            rows.Neighbour(_where(tree[it], addresses), at)
            for it, at in zip(node.nodes, node.ports, strict=True)
        ),
    ]
    children = [rows.through(it, routers) for it in children]
    sharing = {node.index_of_rank(rank) for rank in sharing_ranks(endpoints)}
    parent = None
    if node.parent is not None:
        parent = rows.Neighbour(_where(tree[node.parent], addresses), node.parent_port)
        parent = rows.through(parent, routers)
    is_alone = sum(switch in it for it in by.forest) == 1
    of_job = (FIRST_GROUP + part.number, is_alone, job.priority, age_us)
    at, mode = rows.Place(part, node, tuple(children), parent, *of_job), modes.of(by.mode)
    copies = (
        (mode.copy_port(at, index), 1 + (ALL_WORKERS if index in sharing else index))
        for index in range(len(children))
    )
    group = Group(at.group, tuple(dict.fromkeys(copies)))  # each once, in order
    members = [mode.members(at, index) for index in range(len(children))]
    receivers: list[Entry] = []
    for index, child in enumerate(children):
        receivers += mode.receivers(at, index, child)
    if sharing:
        results_group = endpoints[node.ranks[min(sharing)]].results_group
        assert results_group is not None
        receivers.append(rows.shared_receiver(part, results_group))
    if parent is not None:
        receivers += mode.receivers(at, PARENT, parent)
        receivers += [
            rows.way_down(part, way, index, child)
            for way, (index, child) in zip(
                tree.children_ways(node), enumerate(children), strict=True
            )
        ]
        members.append((mode.parent_member(at, parent),))
    admit, further = mode.admission(at), mode.further(at)
    return JobPlan(
        ((group, *receivers, *further), (admit,), tuple(chain(*members))),
        endpoints,
        {rank: members[index] for index, rank in enumerate(endpoints)},
        tuple(chain(*members[len(endpoints) :])),
    )


def _where(node: Node, addresses: Mapping[str, Peer]) -> Peer:
    if node.host is None:
        return addresses[node.switch]
    return node.host.peer


def sharing_ranks(endpoints: Mapping[int, Endpoint]) -> frozenset[int]:
    """Ranks that get one copy of a result together; ``endpoints``: all of one switch, by rank.

    One alone behind its port gets a copy of its own, which every network carries.
    """
    groups = (at.results_group for at in endpoints.values())
    group = next((it for it in groups if it is not None), None)
    if group is None:
        return frozenset()
    # There is one entry for all of them, so one address: whoever has another gets its own.
    listening = [rank for rank, at in endpoints.items() if at.results_group == group]
    behind = Counter(endpoints[rank].switch_port for rank in listening)
    return frozenset(rank for rank in listening if behind[endpoints[rank].switch_port] > 1)


def epoch_mark(epoch: int) -> Entry:
    """The entry that keeps the last epoch issued. It has no slots and no members."""
    return Entry(
        names.JOBS,
        (("job", MARK_JOB), ("epoch", 0)),
        names.ADMIT_JOB,
        (
            ("epoch", epoch),
            ("first_slot", 0),
            ("slots", 0),
            ("full_bitmap", 0),
            ("group", 0),
            ("job_index", 0),
        ),
    )


def own_address(address: int | str) -> Entry:
    """Makes the switch take packets to this IPv4 address, or network, and to the UDP port of its
    program, for its own."""
    return Entry(names.OWN_ADDRESSES, (("dst_addr", address),), names.OURS, ())


def host_entities(
    job: Job,
    node: HostNode,
    addresses: Mapping[str, Peer],
    values: int,
    *,
    beside: JobMapping | None = None,
) -> list[bytes]:
    """Serialised ``p4.v1.Entity``, for the v1model build that it runs with so many values a packet.

    ``addresses``: of the job's switches, by name. ``beside``: only what this mapping needs beside
    the one that the job has.
    """
    plan = plan_job(job, node.name, addresses, by=beside)
    items: list[Item] = [own_address(int(address)) for address in (node.peer.address, SHM_SWITCH)]
    if beside is not None:
        items = []
        if job.forest == beside.forest:
            plan = plan.beside(plan_job(job, node.name, addresses))
    items += plan.items
    by = beside or job.mapping
    program = modes.of(by.mode).program_at(by.forest.trees[0][node.name])
    entities = entities_of(compiled(values, program).p4info)
    return [entities.encode(item).SerializeToString() for item in items]
