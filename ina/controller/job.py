"""A job's life as a table of states. No I/O, no clock."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, field
from enum import Enum

from ina import modes
from ina.controller.change import Change
from ina.protocol.verify import Verify
from ina.trees.endpoint import Endpoint
from ina.trees.forest import Forest
from ina.trees.mapping import Mapping
from ina.trees.slots import SlotRange, lanes_of
from ina.trees.tree import Node, Tree


class JobState(Enum):
    """Where a job is in its life; the value is what operators see."""

    JOINING = "joining"  # some ranks are missing; nothing of it is on the switch
    STARTING = "starting"  # all are there; its entries are being written
    RUNNING = "running"  # all entries are on the switch
    LEAVING = "leaving"  # some ranks have left, or its entries are being removed
    GONE = "gone"  # its slots and its number are free


class JobEvent(Enum):
    """What moves a job from one state to the next."""

    COMPLETE = "every rank has joined"
    ABANDONED = "no rank waits any more"
    INSTALLED = "the switch has its entries"
    FAILED = "it cannot run: a worker went away, or the switch refused"
    LEFT = "a rank has left"
    ENDED = "it cannot go on: a worker died, an operator ended it, the switch lost its registers"
    REMOVED = "the switch has none of its entries"


_S, _E = JobState, JobEvent
TRANSITIONS: dict[tuple[JobState, JobEvent], JobState] = {
    (_S.JOINING, _E.COMPLETE): _S.STARTING,
    (_S.JOINING, _E.ABANDONED): _S.GONE,
    (_S.STARTING, _E.INSTALLED): _S.RUNNING,
    (_S.STARTING, _E.FAILED): _S.LEAVING,
    (_S.RUNNING, _E.LEFT): _S.LEAVING,
    (_S.RUNNING, _E.ENDED): _S.LEAVING,
    (_S.LEAVING, _E.LEFT): _S.LEAVING,
    (_S.LEAVING, _E.ENDED): _S.LEAVING,
    (_S.LEAVING, _E.REMOVED): _S.GONE,
}
"""Every (state, event) that can happen; any other is a bug in the controller."""


@dataclass(frozen=True)
class Departure:
    """How far a rank had come that has left."""

    where: str
    """Its endpoint, for people."""
    submitted: int
    """Of operations with higher numbers it has sent nothing."""
    finished: int
    """Of operations up to this number it has had the result: all their sums are complete."""
    at_s: float
    """Monotonic clock of the controller: when it left, or when its job was read from a store."""
    why: str = field(default="", compare=False)
    """Why it has given up; empty: it has not, or that is not known any more: it is not stored."""


@dataclass(frozen=True)
class JobSpec:
    """What a job is asked for with, the same by all its workers; and what it was created with."""

    name: str
    world_size: int
    slots: int = 0
    """At each of its switches; 0: as many as is usual."""
    tenant: str = ""
    """Empty: the usual one."""
    priority: int = 0
    """Higher is more important; capped by the tenant's configuration."""
    mode: str = ""
    """Of its first mapping; empty: as another of its workers asks, or as is usual."""
    verify: Verify | None = None
    """How its workers verify its sums; None: as is usual, which is known when all have joined."""
    contributions: int = 0
    """To a sum that reach switches, where hosts add up what their workers send; 0: one of each
    worker."""
    deadline_unix_s: float = 0.0
    """When it is to have ended; 0: it has none."""
    steps: int = 0
    """That it will take; 0: not known."""
    queue_s: float = 0.0
    """How long it waits for slots where there are none."""
    token: str = field(default="", repr=False)
    """That others are to have, too. Of a job that was created there is a hash in its place."""


@dataclass(eq=False)
class Job:
    """One incarnation of a job."""

    spec: JobSpec
    """As it was created: with the tenant, priority and mode that it has."""
    number: int
    """The header's job field, and the index of the job's counters."""
    created_s: float
    """Monotonic clock of the controller."""
    placed: Mapping | None = None
    """What its packets are sent by; None: that is not known before all ranks have joined. Of a job
    that ends it has the switches that have still something of it."""
    epoch: int = 0
    """0 until all ranks have joined."""
    members: dict[int, Endpoint] = field(default_factory=dict)
    """By rank: who has joined and not left."""
    departures: dict[int, Departure] = field(default_factory=dict)
    """By rank: who has left a job that runs, and said how far it had come."""
    state: JobState = JobState.JOINING
    created_unix_s: float = 0.0
    token_hash: bytes = field(default=b"", repr=False)
    """See :mod:`ina.controller.jobs.tokens`; empty: no token is asked for."""
    key_seed: bytes = field(default=b"", repr=False)
    """Secret; the members' keys come from it."""
    first_operation: int = 0
    """Operations from this number on are sent by the mapping that it has; 0: all."""
    change: Change | None = None
    """Of its mapping, under way; None: there is none."""

    def on(self, event: JobEvent) -> None:
        """Moves to the next state."""
        self.state = TRANSITIONS[self.state, event]

    @property
    def name(self) -> str:
        """No other job has it."""
        return self.spec.name

    @property
    def world_size(self) -> int:
        """How many workers it has."""
        return self.spec.world_size

    @property
    def tenant(self) -> str:
        """Whose quota it counts against."""
        return self.spec.tenant

    @property
    def priority(self) -> int:
        """Higher is more important."""
        return self.spec.priority

    @property
    def verify(self) -> Verify | None:
        """How its workers verify its sums; None: that is not known before all have joined."""
        return self.spec.verify

    @property
    def mapping(self) -> Mapping:
        """What its packets are sent by; a job that has been placed."""
        assert self.placed is not None, "it has not been placed"
        return self.placed

    @property
    def forest(self) -> Forest | None:
        """The switches that sum it; None: they are not known yet."""
        return None if self.placed is None else self.placed.forest

    @property
    def trees(self) -> tuple[Tree, ...]:
        """Of its forest; none: they are not known yet."""
        return () if self.placed is None else self.placed.forest.trees

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Of its first tree; those on hosts are in each."""
        return self.trees[0].nodes if self.trees else ()

    @property
    def memory(self) -> dict[str, SlotRange]:
        """By switch: its slots there, as far as that has still something of it."""
        return {} if self.placed is None else self.placed.memory

    @property
    def window(self) -> int:
        """Packets that a worker may have in flight; 0: that is not known yet."""
        return 0 if self.placed is None else self.placed.window

    @property
    def mode(self) -> str:
        """Whether it has slots of its own, or shares those of switches."""
        return self.spec.mode if self.placed is None else self.placed.mode

    @property
    def lacks_shapes(self) -> str:
        """See :meth:`ina.modes.Mode.lacks_shapes`; empty, too: it has not been placed."""
        return "" if self.placed is None else modes.of(self.mode).lacks_shapes(self.placed.forest)

    @property
    def switch(self) -> str:
        """The name of the switch that makes its results, or below that: of all the switch that
        comes first; empty: not known yet.
        """
        return next((node.switch for node in self.nodes if node.host is None), "")

    @property
    def island(self) -> str:
        """The switch that its workers send to, where that is known early; else of no use."""
        return self.trees[0].switches[-1].switch if self.trees else ""

    @property
    def slots(self) -> int:
        """For its packets to name, of all trees together; 0: none yet."""
        return 0 if self.placed is None else self.placed.slots

    @property
    def lanes(self) -> int:
        """W, a power of two: a lane is two slots, and sequence numbers wrap over the lanes."""
        return lanes_of(self.slots)

    @property
    def newest_mapping(self) -> Mapping:
        """The one that it changes to, or has."""
        return self.mappings[-1]

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        """That switches have something of: while it changes two, the older one first."""
        if self.placed is None:
            return ()
        if self.change is None:
            return (self.placed,)
        pair = (self.placed, self.change.other)
        return pair[::-1] if self.change.has_turned else pair

    @property
    def switches(self) -> tuple[str, ...]:
        """Those that have something of it, or shall, by name."""
        return tuple(dict.fromkeys(it for mapping in self.mappings for it in mapping.memory))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Job numbers that are its own: in packets, and of its counters."""
        of_mappings = (number for mapping in self.mappings for number in mapping.numbers)
        return tuple(dict.fromkeys([self.number, *of_mappings]))

    def size_text(self) -> str:
        """``4 workers, slots 0..511, window 256``, for people; of a tree where its slots are."""
        workers = f"{self.world_size} worker{'s' if self.world_size > 1 else ''}"
        below = f" below {self.switch}" if len(self.memory) > 1 else ""
        return f"{workers}{below}, slots {self.mapping.where_text()}, window {self.window}"

    def rack_of(self, rank: int) -> str:
        """The switch that a worker's part comes to first, where several sum the job; else empty.

        Of several trees in the first.
        """
        if self.forest is None or self.forest.has_one_switch:
            return ""
        return self.forest.trees[0].rack(rank)

    def dependent(self, rank: int) -> tuple[int, ...]:
        """The other ranks whose parts go through a node that this rank's process runs."""
        for node in self.nodes:
            if node.host is not None and node.host.rank == rank and node.ranks:
                return tuple(other for other in node.ranks if other != rank)
        return ()

    def switch_text(self, name: str) -> str:
        """One of its switches, for people: by name where several sum it."""
        over = self.forest
        several = over is not None and not (over.has_one_switch and name in over)
        return f"switch {name!r}" if several else "the switch"

    @property
    def shares_slots(self) -> bool:
        """Whether its slots at switches are other jobs', too; they are no range of its own."""
        return any(tree.is_shared for tree in self.trees)

    def shares_slots_of(self, switch: str) -> bool:
        """Whether it needs no slots of its own there, and is exact whatever becomes of any."""
        used = self.mappings
        if self.change is not None and not self.change.may_be_used:
            used = (self.mapping,)
        return all(it.shares_slots_of(switch) for it in used)

    @property
    def senders(self) -> dict[int, Endpoint]:
        """Of a job that is placed: of whom switches get parts, workers and nodes on their hosts.

        By rank, of a node its lowest, as :func:`who_sends_to_switches` has them; also after a
        restart of the controller, when members do not say of which node they are.
        """
        found: dict[int, Endpoint] = {}
        for node in self.nodes:
            if node.host is None:
                found |= {rank: self.members[rank] for rank in node.ranks if rank in self.members}
            elif node.ranks:
                at = node.host
                found[at.rank] = Endpoint(at.peer, at.switch_port, node=at)
        return found

    def missing(self) -> list[int]:
        """Ranks that have not joined, or have left."""
        return [rank for rank in range(self.world_size) if rank not in self.members]


def who_sends_to_switches(members: abc.Mapping[int, Endpoint]) -> dict[int, Endpoint]:
    """Workers that no node on their host adds up, and for each such node the rank that runs it."""
    return {
        rank: at.at_switch
        for rank, at in members.items()
        if at.node is None or at.node.rank == rank
    }
