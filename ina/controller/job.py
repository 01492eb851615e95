"""A job's life as a table of states. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address

from ina.controller.memory import SlotRange
from ina.protocol.addresses import mac_of, place_of
from ina.protocol.verify import Verify


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
class Endpoint:
    """Where a worker is, as the switch sees it."""

    address: IPv4Address
    udp_port: int
    switch_port: int
    mac: int | None = None
    """48 bits; None: derived from the address, as the soft switch's UDP ports do."""
    results_group: IPv4Address | None = None
    """Where it listens for results by IP multicast; None: it wants results of its own."""
    process: str = field(default="", compare=False)
    """Its host and process id, for people; not stored: it says it again with each heartbeat."""

    @property
    def mac_address(self) -> int:
        """The MAC address to send to."""
        return mac_of(self.address) if self.mac is None else self.mac

    def __str__(self) -> str:
        return place_of(self.address, self.udp_port, self.process)


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


@dataclass(eq=False)
class Job:
    """One incarnation of a job."""

    name: str
    number: int
    """The header's job field, and the index of the job's counters."""
    world_size: int
    memory: SlotRange
    created_s: float
    """Monotonic clock of the controller."""
    epoch: int = 0
    """0 until all ranks have joined."""
    members: dict[int, Endpoint] = field(default_factory=dict)
    """By rank: who has joined and not left."""
    departures: dict[int, Departure] = field(default_factory=dict)
    """By rank: who has left a job that runs, and said how far it had come."""
    state: JobState = JobState.JOINING
    tenant: str = "default"
    switch: str = ""
    """The name of the switch that sums it."""
    priority: int = 0
    """Higher is more important; capped by the tenant's configuration."""
    window: int = 0
    """Packets that a worker may have in flight."""
    created_unix_s: float = 0.0
    token_hash: bytes = field(default=b"", repr=False)
    """See :mod:`ina.controller.jobs.tokens`; empty: no token is asked for."""
    key_seed: bytes = field(default=b"", repr=False)
    """Secret; the members' keys come from it."""
    verify: Verify | None = None
    """How its workers verify its sums; None: they have not asked, and have not all joined."""

    def on(self, event: JobEvent) -> None:
        """Moves to the next state."""
        self.state = TRANSITIONS[self.state, event]

    def size_text(self) -> str:
        """``4 workers, slots 0..511, window 256``, for people."""
        last = self.memory.first + self.memory.slots - 1
        workers = f"{self.world_size} worker{'s' if self.world_size > 1 else ''}"
        return f"{workers}, slots {self.memory.first}..{last}, window {self.window}"

    @property
    def full_bitmap(self) -> int:
        """The workers whose contributions make a sum whole, a bit each."""
        return (1 << self.world_size) - 1

    def missing(self) -> list[int]:
        """Ranks that have not joined, or have left."""
        return [rank for rank in range(self.world_size) if rank not in self.members]


def ranks_text(ranks: Sequence[int]) -> str:
    """``rank 2`` or ``ranks 0, 1``."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
