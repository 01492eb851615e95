"""Two leaves below a spine that are entries in memory, and a controller's coordinator over them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any, cast

from ina.controller.config import SwitchConfig, TenantConfig, make_config
from ina.controller.job import Job, JobSpec
from ina.controller.jobs.admission import Admission
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.jobs.site import ControllerSite
from ina.controller.memory import FirstFit, SharedSlots
from ina.controller.store import IN_MEMORY, Store, open_store
from ina.controller.switches.capacity import Capacity
from ina.controller.switches.link import data_address
from ina.controller.switches.reconcile import SwitchState, compare
from ina.controller.switches.switch import Switch
from ina.controller.switches.writer import SwitchWriter
from ina.fabric.graph import Fabric, Link, Place
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.tables.session import SwitchSession
from ina.trees.aggregators import AggregatorPlace, Aggregators
from ina.trees.endpoint import Endpoint
from ina.trees.nearest import Nearest
from tests.worlds.fakes.sessions import SlowSession

LEAVES = ("leaf1", "leaf2")
NAMES = (*LEAVES, "spine")
AGGREGATORS = (AGGREGATOR, _) = ("agg", "agg2")
"""Behind the spine, where there are any."""
SLOTS, SHARED_SLOTS = 64, 32
JOB_SLOTS = 16
RANKS = 4
"""Of a job over both leaves: two behind each."""
TIMEOUT_S = 20.0


def host(leaf: int, number: int) -> IPv4Address:
    return IPv4Address(f"10.0.{leaf}.{number}")


def fabric(racks: int = 2, hosts: int = 40) -> Fabric:
    """Of so many leaves, with so many hosts each."""
    leaves = [f"leaf{leaf}" for leaf in range(1, racks + 1)]
    return Fabric(
        (*leaves, "spine"),
        [Link((name, "spine"), (9, number)) for number, name in enumerate(leaves, 1)],
        {
            host(leaf, number): Place(name, number)
            for leaf, name in enumerate(leaves, 1)
            for number in range(1, hosts + 1)
        },
    )


class Racks:
    """What there is of a controller; :meth:`start` begins a new one over the same store."""

    def __init__(
        self,
        mode: str = names.POOL,
        *,
        aggregators: int = 0,
        more: Sequence[str] = (),
        tenant: TenantConfig | None = None,
    ) -> None:
        """``mode``: of the program of all switches. ``aggregators``: how many there are, too, among
        which each job's lanes are dealt. ``more``: switches that no placement finds.
        """
        self.mode = mode
        self.names = (*NAMES, *more, *AGGREGATORS[:aggregators])
        self.tenant = tenant or TenantConfig(max_priority=9)
        self.sessions: Mapping[str, SlowSession] = {name: SlowSession() for name in self.names}
        self.store: Store = open_store(IN_MEMORY)
        self.configs = {
            name: SwitchConfig(name=name, grpc_addr=f"{name}:9559", data_host=f"10.9.0.{number}")
            for number, name in enumerate(self.names, 1)
        }
        self.registry: Registry
        self.coordinator: Coordinator

    async def start(
        self, *, reconcile: Sequence[str] | None = None, known: Sequence[str] | None = None
    ) -> None:
        """A controller over the ``known`` switches, of which it reaches those of ``reconcile``."""
        known = self.names if known is None else known
        addresses = {name: data_address(self.configs[name]) for name in known}
        capacities = {name: self._capacity(name) for name in known}
        ends = [it for it in known if it in AGGREGATORS]
        places = [AggregatorPlace(it, "spine", 8 + at, 1) for at, it in enumerate(ends)]
        self.registry = Registry(
            capacities,
            EpochCounter(self.store.last_epoch() or 0),
            range(1, 9),
            admission=Admission({"default": self.tenant}, preempt=True),
            placement=lambda _: Nearest(fabric()),
            site=ControllerSite(
                *(capacities, Aggregators(fabric(), places)), aggregators_a_job=max(1, len(ends))
            ),
        )
        switches = [
            Switch(
                self.configs[name],
                SwitchWriter(cast(SwitchSession, self.sessions[name]), self.mode),
                self.registry.switches[name],
                addresses=addresses,
                is_known=False,
            )
            for name in known
        ]
        record = Record(self.store.claim("test"))
        self.coordinator = Coordinator(self.registry, switches, record)
        self.coordinator.restore(self.store.load(0.0))
        for name in self.names if reconcile is None else reconcile:
            await self.reconcile(name)

    def _capacity(self, name: str) -> Capacity:
        own = Capacity(FirstFit(SLOTS, JOB_SLOTS), values=64)
        if name in AGGREGATORS:
            own.is_aggregator, own.is_switch = True, False
        elif self.mode == names.SHARED:
            own.shared = SharedSlots(SLOTS, SHARED_SLOTS)
        own.program = self.mode
        return own

    async def reconcile(self, name: str, *, fresh: bool = False) -> None:
        await self.coordinator.reconcile(self.coordinator.switches[name], fresh=fresh)

    async def run(self, name: str = "j", leaves: Sequence[int] = (1, 1, 2, 2), **more: Any) -> Job:
        """A job with a rank behind each of these leaves, until it runs."""
        (job, *_) = await asyncio.gather(*await self.join_all(name, leaves, **more))
        return job

    async def join_all(
        self,
        name: str,
        leaves: Sequence[int],
        *,
        slots: int = 0,
        priority: int = 0,
        mode: str = names.POOL,
    ) -> list[asyncio.Task[Job]]:
        """The calls of its ranks."""
        await self.coordinator.create(
            JobSpec(name, len(leaves), slots, priority=priority, mode=mode), 0.0
        )
        calls = []
        for rank, leaf in enumerate(leaves):
            at = Endpoint(Peer(host(leaf, 1 + rank), 4000), 1 + rank, switch=f"leaf{leaf}")
            call = self.coordinator.join(name, rank, at, TIMEOUT_S)
            calls.append(asyncio.create_task(call))
        return calls

    def leave_all(self, job: Job) -> list[asyncio.Task[None]]:
        return [
            asyncio.create_task(self.coordinator.leave(job.name, rank, job.epoch))
            for rank in list(job.members)
        ]

    async def until_idle(self) -> None:
        while self.coordinator._background._tasks:
            await asyncio.sleep(0)

    def used(self) -> dict[str, int]:
        """Slots that are taken, by switch."""
        return {name: it.memory.used() for name, it in self.registry.switches.items()}

    def assert_agrees(self) -> None:
        """Each switch has what the registry says that it shall have, and nothing else of jobs."""
        for name, switch in self.coordinator.switches.items():
            wanted = switch.wanted_of(job for job in self.registry if name in job.switches)
            found = tuple(self.sessions[name].of_jobs())
            difference = compare(wanted, SwitchState(None, found))
            assert (difference.missing, difference.wrong) == ({}, []), name
            assert (difference.extra, difference.foreign) == ([], []), name


CONFIG = make_config(
    {
        "switch": [
            {"name": name, "grpc_addr": f"{name}:9559", "data_host": f"10.9.0.{number}"}
            for number, name in enumerate(NAMES, 1)
        ],
        "link": [{"switches": [leaf, "spine"]} for leaf in LEAVES],
        "host": [
            {"address": str(host(leaf, number)), "switch": f"leaf{leaf}", "port": number}
            for leaf in (1, 2)
            for number in range(1, 5)
        ],
    },
    "test",
)
