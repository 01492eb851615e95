"""Every metric that our collectors export, with its labels; from samples of each."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import Metric

from ina.controller.service.metrics import DROPS, JOB_COUNTERS, ControllerCollector, Snapshot
from ina.host import SessionClosedError
from ina.host.metrics import SessionCollector
from ina.host.stats import SessionStats
from ina.host.ticket import Ticket
from ina.rpc import controller_pb2 as pb2
from ina.switch.metrics import SwitchCollector
from ina.switch.stats import PortStats, SwitchStats
from ina.torch.metrics import GroupCollector
from ina.torch.stats import GroupStats
from tests.worlds.fakes.tickets import direct_ticket

JOB = pb2.Job(
    name="train", tenant="vision", state="running", world_size=3, joined=[0, 1], slots=512,
    window=256, epoch=9, stall=pb2.Stall(missing=[2], waiting=[0, 1], since_unix_s=1000.0),
)  # fmt: skip
MEMBER = pb2.Member(
    rank=1, lease_left_s=7.5, watching=True,
    progress=pb2.Progress(
        operations_done=4, retransmissions=8, losses=1, spurious_resends=2, probes=5,
        packets_sent=40, in_flight=2, silent_s=1.5,
    ),
)  # fmt: skip
COUNTERS = [
    *(
        pb2.Counter(name=alias, index=4, job="train", packets=100 + i, bytes=1000 + i)
        for i, alias in enumerate(JOB_COUNTERS)
    ),
    pb2.Counter(name=DROPS, index=1, label="unknown_member", packets=5, switch="tor1"),
]


def families() -> list[Metric]:
    """Of a switch, of a controller with a job, of a session, and of a process group."""
    sessions, session = SessionCollector(), FakeSession()
    sessions.sessions.add(session)
    switch = SwitchCollector(1, lambda: SwitchStats({1: PortStats()}, 0, 0, 0, 0, 0))
    groups, group = GroupCollector(), FakeGroup()
    groups.groups.add(group)
    return [
        *switch.collect(),
        *asyncio.run(_controller()),
        *sessions.collect(),
        *groups.collect(),
    ]


async def _controller() -> Iterable[Metric]:
    collector = ControllerCollector(lambda: SNAPSHOT, counters)
    found = await asyncio.to_thread(lambda: list(collector.collect()))
    await collector.close()
    return found


def labels_by_sample() -> dict[str, frozenset[str]]:
    """``ina_switch_packets_total`` to ``{"port", "direction"}``."""
    found = {
        sample.name: frozenset(sample.labels)
        for family in families()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    assert found
    return found


SNAPSHOT = Snapshot(
    controller=pb2.ShowControllerReply(
        role="primary", election_id=2, switch_addr="10.0.0.9:9559", switch_state="connected",
        store="/c.db", slots_total=8192, slots_used=512, last_epoch=9, started_unix_s=500.0,
        switches=[
            pb2.SwitchStatus(name="tor1", address="10.0.0.9:9559", state="connected",
                             election_id=2, slots_total=8192, slots_used=512),
        ],
    ),
    jobs=[JOB],
    members={"train": [MEMBER]},
    foreign_entries={"tor1": 6},
    tenants=[
        pb2.Tenant(name="vision", configured=True, jobs=1, slots=512, workers=3, slots_limit=1024,
                   jobs_limit=4, workers_limit=8),
        pb2.Tenant(name="other"),
    ],
)  # fmt: skip


async def counters() -> Iterable[pb2.Counter]:
    return COUNTERS


def ticket(job: str = "train", rank: int = 1) -> Ticket:
    return direct_ticket(job, 1, 1, rank, 4, 512, 64, "127.0.0.1", 1)


def counted() -> SessionStats:
    """A different number in each field."""
    fields = dataclasses.fields(SessionStats)
    numbers: dict[str, Any] = {f.name: 1000 + i for i, f in enumerate(fields)}
    return SessionStats(**numbers)


@dataclass(eq=False)  # counted by what it is, as a session
class FakeSession:
    ticket: Ticket = field(default_factory=ticket)
    closed: bool = False

    def stats(self) -> SessionStats:
        if self.closed:
            raise SessionClosedError("closed")
        return counted()


@dataclass(eq=False)  # counted by what it is, as a group
class FakeGroup:
    lost: bool = False
    returned_unix_s: float = 0.0
    rank: int = 1

    def stats(self, *, with_switch: bool = True) -> GroupStats:
        assert not with_switch, "a scrape does not ask the switch"
        return GroupStats(
            job="train",
            rank=self.rank,
            world_size=2,
            controller="",
            network_all_reduces=5,
            network_reduce_scatters=2,
            network_elems=0,
            network_bytes=0,
            fallbacks=3,
            fallback_reasons={},
            other_collectives={"broadcast": 4},
            session={},
            switch=None,
            switch_loss={"returned_unix_s": self.returned_unix_s} if self.lost else None,
            switch_returns=int(self.returned_unix_s > 0),
            sparse_all_reduces=3,
            sparse_blocks=300,
            sparse_own_blocks=20,
            sparse_union_blocks=40,
            network_reduces=1,
            network_all_gathers=6,
            network_broadcasts=8,
            network_barriers=9,
        )
