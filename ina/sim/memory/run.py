"""A trace through the controller that ships: its registry, coordinator, changes, queue and policy,
a session with a soft switch, all in virtual time. Jobs are fluids; what their workers would report
and say, they do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from ina.controller.change import Word
from ina.controller.config import JobsConfig, SwitchConfig
from ina.controller.errors import QueuedError
from ina.controller.job import Job, JobSpec
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.events import EventBus
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.memory import allocator_for
from ina.controller.memory.demand import Demand
from ina.controller.service.arrivals import Arrivals
from ina.controller.slots.memory import Memory
from ina.controller.slots.rebalancer import Rebalancer
from ina.controller.store import IN_MEMORY, Store, open_store
from ina.controller.surroundings import Surroundings
from ina.controller.switches.capacity import Capacity
from ina.controller.switches.switch import Switch
from ina.controller.switches.writer import SwitchWriter
from ina.controller.watch.failure_detector import FailureDetector
from ina.controller.watch.leases import MAX_HEARTBEAT_S
from ina.fabric.shapes import star
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.protocol.spec import VALUE_BYTES
from ina.rpc import controller_pb2 as pb2
from ina.sim.agent import SwitchAgent
from ina.sim.controller import START_UNIX_S
from ina.sim.fabric import VirtualFabric
from ina.sim.loop import VirtualLoop
from ina.sim.memory.fluid import Training
from ina.sim.memory.outcome import Ended, Outcome, outcome
from ina.sim.memory.trace import PAYLOAD_BYTES, TracedJob
from ina.sim.messages import ControlLog, Path
from ina.sim.process import Process
from ina.sim.southbound import connect
from ina.sim.topology import laid
from ina.trees.endpoint import Endpoint

QUEUE_S = 7 * 24 * 3600.0
CALL_S = 30.0
"""A worker asks again for its place in the queue."""
JOIN_S = 60.0
_FIRST_HOST = int(IPv4Address("10.1.0.1"))
_LIMIT_S = 30 * 24 * 3600.0


@dataclass(frozen=True)
class Bench:
    """What there is of a controller."""

    loop: VirtualLoop
    coordinator: Coordinator
    memory: Memory
    arrivals: Arrivals


def run_trace(
    trace: Sequence[TracedJob], config: JobsConfig, *, slots: int, aggregator: bool
) -> Outcome:
    """All jobs of a trace under the policy of ``config``.

    ``aggregator``: what finds no slot is summed by one of the job's own, so that a job that waits
    for slots trains meanwhile; without, it stands still.
    """
    with (
        _quiet(),
        VirtualFabric(laid(star(1)), seed=1, values=PAYLOAD_BYTES // VALUE_BYTES) as fabric,
        VirtualLoop(fabric.network, limit_s=_LIMIT_S) as loop,
        contextlib.closing(open_store(IN_MEMORY)) as store,
    ):
        ended, decision_s = loop.run_until_complete(
            _all(trace, config, loop, fabric, store, slots=slots, aggregator=aggregator)
        )
    return outcome(config.policy or "static", ended, decision_s)


async def _all(
    trace: Sequence[TracedJob],
    config: JobsConfig,
    loop: VirtualLoop,
    fabric: VirtualFabric,
    store: Store,
    *,
    slots: int,
    aggregator: bool,
) -> tuple[list[Ended], float]:
    """What became of them, and how long the longest decision took."""
    (name,) = fabric.switches
    switch_config = SwitchConfig(name=name, max_window=0)
    process = Process("controller")
    agent = SwitchAgent(fabric.switches[name], has_program=True)
    session = await connect(
        process, agent, Path("c1-s1", 1, ControlLog(loop)), switch_config, standby=False
    )
    capacity = Capacity(allocator_for(config, slots), values=PAYLOAD_BYTES // VALUE_BYTES)
    registry = Registry(
        {name: capacity},
        EpochCounter(0, lambda: START_UNIX_S + loop.time()),
        range(1, names.JOBS_TOTAL),
        room=lambda registry: Memory(config, registry, clock=loop.time),
        surroundings=Surroundings(unix_s=lambda: START_UNIX_S + loop.time()),
    )
    memory = registry.room
    assert isinstance(memory, Memory)
    switch = Switch(switch_config, SwitchWriter(session), capacity)
    coordinator = Coordinator(
        *(registry, [switch], Record(store.claim("trace"))),
        events=EventBus(unix_clock=lambda: START_UNIX_S + loop.time()),
        clock=loop.time,
    )
    memory.sizing.has_aggregator = lambda _job: aggregator
    watch, rebalancer = _Stopwatch(memory), Rebalancer(memory, coordinator)
    detector = FailureDetector(coordinator, 3600.0, clock=loop.time)  # nobody dies: not started
    bench = Bench(loop, coordinator, memory, Arrivals(coordinator, detector, memory, loop.time))
    await coordinator.reconcile(switch, fresh=True)
    rebalancer.start()
    try:
        jobs = [_Traced(bench, job, aggregator=aggregator) for job in trace]
        ended = await asyncio.gather(*(job.run() for job in jobs))
    finally:
        await rebalancer.close()
        await coordinator.close()
        await session.close()
    return ended, watch.longest_s


class _Stopwatch:
    """Of the policy's decisions, in the time of this machine."""

    def __init__(self, memory: Memory) -> None:
        self.longest_s = 0.0
        self._targets = memory.sizing.targets
        memory.sizing.targets = self._timed  # type: ignore[method-assign]

    def _timed(self, waiting: Sequence[Demand] = ()) -> dict[Job, int]:
        began_s = time.thread_time()
        found = self._targets(waiting)
        self.longest_s = max(self.longest_s, time.thread_time() - began_s)
        return found


class _Traced:
    """A job of the trace, and all its workers."""

    def __init__(self, bench: Bench, job: TracedJob, *, aggregator: bool) -> None:
        self._bench = bench
        self._loop = bench.loop
        self._job = job
        self._training = Training(job, job.model(aggregator=aggregator), job.comes_s)
        self._resizes = 0
        self._resized = asyncio.Event()

    async def run(self) -> Ended:
        """From when it comes to its end."""
        job, loop = self._job, self._loop
        await asyncio.sleep(job.comes_s - loop.time())
        membership = asyncio.create_task(self._take_part())
        try:
            await self._train(membership)
        finally:
            membership.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await membership
        took_s = loop.time() - job.comes_s
        missed = loop.time() > job.deadline_s
        return Ended(took_s, took_s / job.lasts_s, missed, self._resizes)

    async def _train(self, membership: asyncio.Task[None]) -> None:
        """Until its last step."""
        while (left_s := self._training.left_s(self._loop.time())) > 1e-9:
            self._resized.clear()
            resized = asyncio.ensure_future(self._resized.wait())
            timeout_s = None if left_s == float("inf") else left_s
            await asyncio.wait(
                [resized, membership], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            resized.cancel()
            if membership.done():
                membership.result()  # it ends with an error alone

    async def _take_part(self) -> None:
        """Waits for slots, joins, reports and changes, until it is cancelled; then it leaves."""
        coordinator = self._bench.coordinator
        job = await self._create()
        ranks = range(self._job.workers)
        with coordinator.events.subscribe(job.name) as events:
            await asyncio.gather(
                *(coordinator.join(job.name, rank, _endpoint(job, rank), JOIN_S) for rank in ranks)
            )
            self._has(job.slots)
            heartbeats = asyncio.create_task(self._report(job))
            try:
                async for event in events:
                    if event.kind == pb2.JOB_REMAPS:
                        await self._change(job)
                    elif event.kind == pb2.JOB_REMAPPED:
                        self._resizes += 1
                        self._has(job.slots)
            finally:
                heartbeats.cancel()
                for rank in ranks:
                    await coordinator.leave(job.name, rank, job.epoch)

    async def _create(self) -> Job:
        asked = JobSpec(
            self._job.name,
            self._job.workers,
            deadline_unix_s=START_UNIX_S + self._job.deadline_s,
            steps=self._job.steps,
            queue_s=QUEUE_S,
        )
        while True:
            with contextlib.suppress(QueuedError):
                return await self._bench.arrivals.create(asked, CALL_S, may_ask=False)

    async def _report(self, job: Job) -> None:
        while True:
            await asyncio.sleep(MAX_HEARTBEAT_S)
            # One for all: its workers are alike.
            self._bench.memory.hear(job, 0, self._training.report(self._loop.time()))

    async def _change(self, job: Job) -> None:
        """All ask; rank 0 says from the next step on; a step later all are done with the former."""
        changes, ranks = self._bench.coordinator.changes, range(self._job.workers)
        told = None
        for rank in (*ranks, 0):
            told = changes.hear(job, rank, Word())
        epoch = changes.epoch_to(job, 0)
        if not epoch or told is None:
            return  # called off
        if told.terms.first_operation:  # decided; in place, they also say that they may begin
            for rank in ranks:
                opened = changes.hear(job, rank, Word(epoch))
                if opened is not None and not opened.terms.waits:
                    changes.hear(job, rank, Word())
            return
        first = self._training.report(self._loop.time()).operations_done + 1
        changes.hear(job, 0, Word(epoch, first_operation=first))
        step_s = self._training.step_s
        await asyncio.sleep(step_s if step_s < JOIN_S else JOIN_S)
        for rank in ranks:
            changes.hear(job, rank, Word(epoch, done=True))

    def _has(self, slots: int) -> None:
        self._training.resize(slots, self._loop.time())
        self._resized.set()


def _endpoint(job: Job, rank: int) -> Endpoint:
    address = IPv4Address(_FIRST_HOST + 256 * job.number + rank)
    return Endpoint(Peer(address, 4000), 1)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What the controller logs of thousands of jobs is nobody's to read."""
    log = logging.getLogger("ina.controller")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
