"""A coordinator on a recording switch, alone and under the failure detector."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address
from typing import Any

from ina.controller.job import Job, JobSpec
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.memory import StaticPool
from ina.controller.store import IN_MEMORY, open_store
from ina.controller.watch.failure_detector import FailureDetector
from ina.controller.watch.leases import Member
from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2
from ina.trees.endpoint import Endpoint
from tests.worlds.fakes.sessions import RecordingSwitch
from tests.worlds.fakes.switches import alone, only, switch_of


class Bench:
    def __init__(self) -> None:
        self.switch = RecordingSwitch()
        self.registry = Registry(alone(StaticPool(64, 16)), EpochCounter(0), range(1, 9))
        self.store = open_store(IN_MEMORY)
        self.claim = self.store.claim("test")
        self.coordinator = Coordinator(
            self.registry, [switch_of(self.registry, self.switch)], Record(self.claim)
        )

    def join(self, rank: int, timeout_s: float = 20.0) -> asyncio.Task[Any]:
        endpoint = Endpoint(Peer(IPv4Address("10.0.0.1"), 4000 + rank), 1)
        return asyncio.create_task(self.coordinator.join("j", rank, endpoint, timeout_s))

    async def start(self, world_size: int, timeout_s: float = 20.0) -> list[asyncio.Task[Any]]:
        await self.coordinator.create(JobSpec("j", world_size), 0.0)
        joins = [self.join(rank, timeout_s) for rank in range(world_size)]
        for _ in range(3):
            await asyncio.sleep(0)
        return joins

    def told(self) -> list[tuple[str, list[int], bool]]:
        """Kind, ranks, whether fatal, of every event of the job so far."""
        return [
            (pb2.EventKind.Name(event.kind), list(event.ranks), event.fatal)
            for event in self.coordinator.events.history("j")
        ]

    async def until_empty(self) -> None:
        while len(self.registry):
            await asyncio.sleep(0.01)
        self.assert_empty()

    def assert_empty(self) -> None:
        assert len(self.registry) == 0
        assert self.registry.slots_used() == 0


class Watched(Bench):
    """One job "j" of three; ``go`` moves the clock in steps as small as the detector's own."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 100.0
        self.unreachable_s = 0.0
        self.broken = ""
        only(self.coordinator).unreachable_s = lambda: self.unreachable_s
        self.detector = FailureDetector(
            self.coordinator,
            10.0,
            broken=lambda _job: self.broken,
            clock=lambda: self.now_s,
            unix_clock=lambda: self.now_s + 1e9,
        )

    async def run(self) -> Job:
        await asyncio.gather(*await self.start(3))
        self.detector.check()
        return self.registry.get("j")

    def go(self, seconds: float, alive: tuple[int, ...] = (), progress: str = "") -> None:
        """``alive`` ranks heartbeat; by ``progress`` (a letter a rank) they report lanes."""
        for _ in range(int(seconds)):
            self.now_s += 1.0
            for rank in alive:
                self.detector.heard(self.member(rank), LANES[progress[rank]] if progress else None)
            self.detector.check()

    def member(self, rank: int) -> Member:
        return Member(1, rank)

    def reasons(self, kind: pb2.EventKind) -> list[str]:
        return [e.reason for e in self.coordinator.events.history("j") if e.kind == kind]


def lanes(first: int, waits: bool, silent_s: float = 0.0) -> pb2.Progress:
    return pb2.Progress(
        lane_seqs=[first, 9],
        lanes_waiting=bytes([int(waits)]),
        in_flight=int(waits),
        oldest_seq=first,
        silent_s=silent_s,
    )


# w: waits for number 8 of lane 0 for three seconds; o: has sent 6 only; d: packets were in flight
# just now; s: has heard nothing of the switch for 11 s.
LANES = {
    "w": lanes(8, True, 3.0),
    "o": lanes(6, False),
    "d": lanes(8, True),
    "s": lanes(8, True, 11.0),
}
