"""WorkerCores and the reference switch model in one process, over links that misbehave by a seed.

Time is simulated: nothing here reads a clock, so a seed replays exactly.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ina._native.congestion import Choice
from ina._native.host import RtoLimits, VerifyMode, WorkerConfig, WorkerCore
from ina.host.arrays import VALUE_TYPES
from ina.protocol.codec import encode
from ina.protocol.switch_model import Attachment, Job, SwitchModel
from tests.host.shares import Shares

Array = NDArray[Any]

JOB = 7
EPOCH = 0x1_0003  # wider than the header's field
MS = 1_000_000
SECOND = 1_000_000_000


@dataclass
class Link:
    """What happens to a packet; times in ns. Delays between the bounds reorder packets."""

    loss: float = 0.0
    duplication: float = 0.0
    min_delay_ns: int = 20_000
    max_delay_ns: int = 60_000
    # Some packets come very late: long after their chunk is over.
    late: float = 0.0
    late_delay_ns: int = 50 * MS


@dataclass(order=True)
class _Event:
    at_ns: int
    order: int
    receiver: int = field(compare=False)  # rank; -1: the switch
    sender: int = field(compare=False)
    payload: bytes = field(compare=False)


def worker_config(
    rank: int,
    world_size: int,
    slots: int,
    values: int,
    stall_s: float = 60.0,
    first_seq: int = 0,
    keep_results: bool = False,
    share: int = 0,
    shares: int = 1,
    verify: VerifyMode = VerifyMode.OFF,
    check_key: bytes = bytes(16),
) -> WorkerConfig:
    return WorkerConfig(
        job=JOB,
        epoch=EPOCH,
        rank=rank,
        world_size=world_size,
        slots=slots,
        values_per_packet=values,
        stall_timeout_ns=int(stall_s * SECOND),
        rto=RtoLimits(),
        first_seq=first_seq,
        keep_results=keep_results,
        share=share,
        shares=shares,
        verify=verify,
        check_key=check_key,
    )


class Network:
    """A star: `world_size` workers around one switch."""

    def __init__(
        self,
        world_size: int,
        *,
        slots: int = 16,
        values: int = 64,
        link: Link | None = None,
        seed: int = 0,
        in_flight: Sequence[int] | None = None,
        first_seq: int = 0,
        keep_results: bool = False,
        shares: Sequence[int] | None = None,
        window: Choice | None = None,
        verify: VerifyMode = VerifyMode.OFF,
        check_key: bytes = bytes(16),
    ) -> None:
        """`shares`: of each worker; those of a worker with more than one act as one core.

        `window`: the usual one unless given. `verify`, `check_key`: of all workers.
        """
        self.link = link or Link()
        self.random = random.Random(seed)
        limits = in_flight or [0] * world_size

        def core(rank: int, share: int, count: int) -> WorkerCore:
            config = worker_config(
                *(rank, world_size, slots, values),
                first_seq=first_seq,
                keep_results=keep_results,
                share=share,
                shares=count,
                verify=verify,
                check_key=check_key,
            )
            return WorkerCore(config, limits[rank], window or Choice())

        counts = shares or [1] * world_size
        self.workers: list[WorkerCore] = []
        for rank, count in enumerate(counts):
            cores = [core(rank, i, count) for i in range(count)]
            # The stand-in for several cores has what is used here of one.
            self.workers.append(cores[0] if count == 1 else cast(WorkerCore, Shares(cores, values)))
        self.model = SwitchModel(slots, values)
        self.attachments = tuple(Attachment(rank, rank, 1000 + rank) for rank in range(world_size))
        self.model.install(Job(JOB, EPOCH, 0, slots, self.attachments))
        self.now_ns = 0
        self.lost = 0  # packets, both ways
        self.frozen: set[int] = set()  # ranks that neither send nor receive any more
        self.done: list[list[int]] = [[] for _ in range(world_size)]
        self._events: list[_Event] = []
        self._order = 0

    def submit(self, rank: int, tensor_id: int, array: Array, out: Array, op: str = "sum") -> None:
        self.workers[rank].submit(
            tensor_id,
            array.ctypes.data,
            out.ctypes.data,
            array.size,
            VALUE_TYPES[array.dtype],
            op == "avg",
            self.now_ns,
        )

    def run(self, tensors: int, limit_s: float = 600.0) -> None:
        """Run until every worker has completed so many tensors in all."""
        while True:
            self._transmit()
            if all(len(done) >= tensors for done in self.done):
                return
            self._advance(limit_s)

    def run_until(self, at_ns: int) -> None:
        """Run to a time (at least), whatever is done by then."""
        while self.now_ns < at_ns:
            self._transmit()
            if not self._times():
                self.now_ns = at_ns  # nothing is under way
                return
            self._advance(600.0)

    def step(self) -> None:
        """Send what is due, then go on to the next thing that happens, if anything does."""
        self._transmit()
        if self._times():
            self._advance(600.0)

    def _transmit(self) -> None:
        for rank, worker in enumerate(self.workers):
            if rank in self.frozen:
                continue
            while packets := worker.poll_transmit(self.now_ns):
                for packet in packets:
                    self._carry(-1, rank, packet)
            self.done[rank] += worker.take_completions()

    def _times(self) -> list[int]:
        """When something happens next, for each that something happens to."""
        deadlines = [
            worker.next_deadline_ns(self.now_ns)
            for rank, worker in enumerate(self.workers)
            if rank not in self.frozen
        ]
        times = [at_ns for at_ns in deadlines if at_ns is not None]
        if self._events:
            times.append(self._events[0].at_ns)
        return times

    def _advance(self, limit_s: float) -> None:
        times = self._times()
        assert times, "nothing is under way, but not all is done"
        self.now_ns = max(self.now_ns, min(times))
        assert self.now_ns < limit_s * SECOND, "no end in sight"
        while self._events and self._events[0].at_ns <= self.now_ns:
            self._deliver(heapq.heappop(self._events))

    def _deliver(self, event: _Event) -> None:
        if event.receiver in self.frozen:
            return
        if event.receiver >= 0:
            self.workers[event.receiver].on_result(event.payload, self.now_ns)
            return
        for departure in self.model.receive(self.attachments[event.sender], event.payload):
            self._carry(departure.to.port, -1, encode(departure.header, departure.values))

    def _carry(self, receiver: int, sender: int, payload: bytes) -> None:
        link, rng = self.link, self.random
        copies = 2 if rng.random() < link.duplication else 1
        for _ in range(copies):
            if rng.random() < link.loss:
                self.lost += 1
                continue
            delay_ns = rng.randint(link.min_delay_ns, link.max_delay_ns)
            if rng.random() < link.late:
                delay_ns += link.late_delay_ns
            self._order += 1
            event = _Event(self.now_ns + delay_ns, self._order, receiver, sender, payload)
            heapq.heappush(self._events, event)


def all_reduce(network: Network, parts: Sequence[Array], op: str = "sum") -> list[Array]:
    """Reduce one tensor over an idle network; returns each rank's result."""
    outs = [np.empty_like(part) for part in parts]
    done = len(network.done[0])
    for rank, part in enumerate(parts):
        network.submit(rank, done + 1, part, outs[rank], op)
    network.run(done + 1)
    return outs
