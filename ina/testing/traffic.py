"""Seeded traffic: workers that follow the protocol, a network that repeats, and much else."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ina import modes
from ina.p4 import names
from ina.protocol import serial
from ina.protocol.codec import Header, decode_header, encode_header
from ina.protocol.shared_model import Claims
from ina.protocol.spec import (
    ALL_WORKERS,
    HEADER_BYTES,
    MAX_LEVELS,
    MAX_WORKERS,
    PATH_BITS,
    UDP_PORT,
    VERSION,
    Flag,
    Kind,
    Shape,
    ValueType,
)
from ina.protocol.strips import Strips
from ina.protocol.switch_model import EPOCH_BITS, Attachment, ModelJob, Parent, Sharing
from ina.testing.frames import CE, PAYLOAD_OFFSET, Frame, PortFrame, without_udp_checksum
from ina.testing.mutations import MUTATIONS, mutate_header

HISTORY = 4096  # frames that may come again
_RESULT = VERSION << 4 | Kind.RESULT  # a result's first byte
_CONTRIBUTION = VERSION << 4 | Kind.CONTRIBUTION
ALWAYS_OLD, NEVER_OLD = 0, 1 << 31
"""``age_us`` of jobs, so that nothing depends on a device's clock: with the second, a slot that was
used since power-on is in use until it is released."""
DELIVERED = 0.9  # share of results that reach their worker, and of sums that reach the parent


@dataclass
class LiveJob:
    """A job and how far its workers are: by lane, the chunk that each waits for."""

    job: ModelJob
    first_seq: int
    waiting: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        window = self.job.slots // 2
        lanes = [serial.add(self.first_seq, lane) for lane in range(window)]
        self.waiting = [list(lanes) for _ in self.job.workers]

    def reached(self, port: int, worker: int) -> list[int]:
        """Whom a result that leaves by this port and names this worker is for."""
        if worker != ALL_WORKERS or self.job.sharing is None:
            return [worker] if worker < len(self.job.workers) else []
        sharing = sorted(self.job.sharing.workers)
        return [rank for rank in sharing if self.job.workers[rank].port == port]

    def deliver(self, worker: int, seq: int) -> None:
        """The worker has a result; it goes on in that lane if it has waited for it."""
        lanes = self.waiting[worker]
        if seq in lanes:
            lanes[lanes.index(seq)] = serial.add(seq, self.job.slots // 2)


def make_jobs(
    rng: random.Random, sizes: list[int], slots: list[int], mode: str = names.DEFAULT_MODE
) -> list[ModelJob]:
    """Returns one job a size, in adjacent slot ranges.

    Some workers share ports, some addresses, and, where there are trees, some the copies of their
    results; then, too, the switch has a parent in some jobs. Where jobs share slots those of half
    of the jobs that have one are claimed, and others' too; and half of the jobs have children that
    are sets of workers. Where the program knows of last words, most jobs have them.
    """
    jobs = []
    first_slot = 0
    for number, (size, count) in enumerate(zip(sizes, slots, strict=True)):
        one_port = rng.random() < 0.3
        workers = tuple(
            Attachment(
                port=1 if one_port else worker + 1,
                ipv4=0x0A000001 + (number << 8) + (0 if rng.random() < 0.2 else worker),
                udp_port=20000 + 64 * number + worker,
            )
            for worker in range(size)
        )
        epoch = rng.randrange(1, 1 << 17)
        sharing, parent = None, None
        if modes.of(mode).has_trees:
            sharing, parent = _sharing(rng, number, size), _parent(rng, number, size)
        job = ModelJob(number, epoch, first_slot, count, workers, sharing, parent)
        jobs.append(_stripping(job))
        first_slot += count
    if modes.of(mode).slots_shared(0):
        return [_claiming(rng, _of_sets(rng, job), first_slot) for job in jobs]
    if modes.of(mode).is_stream:
        return [replace(job, is_stream=rng.random() < 0.7) for job in jobs]
    return jobs


def _stripping(job: ModelJob) -> ModelJob:
    """With rows that strip copies of any shape, on ways of a few bits anywhere in the path."""
    rng = random.Random(job.epoch)  # of its own: seeds mean what they meant without it

    def some() -> Strips:
        mask = rng.getrandbits(PATH_BITS) & rng.getrandbits(PATH_BITS) & rng.getrandbits(PATH_BITS)
        sums_too = 1 if rng.random() < 0.1 else 0
        on, off = (rng.getrandbits(4) & ~1 | sums_too for _ in range(2))
        return Strips(rng.getrandbits(PATH_BITS) & mask, mask, on, off)

    parent = job.parent and replace(job.parent, strips=some())
    return replace(job, parent=parent, strips=tuple(some() for _ in job.workers))


def _claiming(rng: random.Random, job: ModelJob, first_slot: int) -> ModelJob:
    """In most jobs, a switch that shares the slots behind all others', most often all lanes'."""
    if rng.random() < 0.3:
        return job
    parent = job.parent
    if parent is None:
        at = Attachment(rng.choice((1, 2, 9)), 0x0A01_0001 + job.number, UDP_PORT)
        parent = Parent.above(at, (rng.randrange(MAX_WORKERS),), 1, len(job.workers))
    lanes = job.slots // 2
    claims = Claims(
        lane_mask=lanes - 1,
        claimable=lanes if rng.random() < 0.7 else rng.randrange(lanes + 1),
        age_us=rng.choice((ALWAYS_OLD, ALWAYS_OLD, NEVER_OLD)),
        lead_us=rng.choice((0, NEVER_OLD)),
    )
    return replace(job, first_slot=first_slot + rng.randrange(2), parent=parent, claims=claims)


def _of_sets(rng: random.Random, job: ModelJob) -> ModelJob:
    """Perhaps with children of several bits each, of which some say whose parts they bring."""
    children = len(job.workers)
    if rng.random() < 0.5:
        return job
    owner = [rng.randrange(children) for _ in range(MAX_WORKERS)]
    owner[:children] = range(children)  # each has at least one
    bits = [
        sum(1 << bit for bit in range(MAX_WORKERS) if owner[bit] == it) for it in range(children)
    ]
    sets = frozenset(child for child in range(children) if rng.random() < 0.7)
    return replace(job, bits=tuple(bits), sets=sets)


def _sharing(rng: random.Random, number: int, size: int) -> Sharing | None:
    """In half of the jobs, about half of the workers."""
    chosen = frozenset(rank for rank in range(size) if rng.random() < 0.5)
    return Sharing(chosen, 0xEF000001 + number) if chosen and rng.random() < 0.5 else None


def _parent(rng: random.Random, number: int, size: int) -> Parent | None:
    """In half of the jobs, a switch one to three levels above which there is nothing."""
    if rng.random() < 0.5:
        return None
    at = Attachment(rng.choice((1, 2, 9)), 0x0A01_0001 + number, UDP_PORT)
    way = tuple(rng.randrange(MAX_WORKERS) for _ in range(rng.randrange(1, MAX_LEVELS)))
    return Parent.above(at, way, rng.randrange(1, 16), size)


class Traffic:
    """What arrives at the switch. The same seed gives the same packets, given the same results."""

    def __init__(
        self, rng: random.Random, values: int, jobs: list[ModelJob], *, grows: bool = True
    ) -> None:
        """``grows``: some packets are without values and leave with some."""
        self.rng = rng
        self.grows = grows
        self.checks = random.Random(values)  # of its own: seeds mean what they meant without it
        self.values = values
        self.jobs = {job.number: self._live(job) for job in jobs}
        self.history: deque[PortFrame] = deque(maxlen=HISTORY)
        self.answers: deque[PortFrame] = deque(maxlen=HISTORY)  # of parents
        self.last_epoch = max(job.epoch for job in jobs)

    def _live(self, job: ModelJob) -> LiveJob:
        near_the_wrap = self.rng.random() < 0.5
        first = 2**32 - 4 * job.slots if near_the_wrap else job.slots * self.rng.randrange(1000)
        return LiveJob(job, first)

    def next(self) -> PortFrame:
        """Returns the port and bytes of the next frame."""
        if self.answers and self.rng.random() < 0.3:
            return self.answers.popleft()
        kind = self.rng.random()
        if kind < 0.70 or not self.history:
            arrival = self._contribution({})
            self.history.append(arrival)
            return arrival
        if kind < 0.82:
            return self.rng.choice(self.history)
        if kind < 0.90:
            return self._contribution(None)
        return self._mutated()

    def _contribution(self, changes: dict[str, Any] | None) -> PortFrame:
        """A worker's next packet; None changes its header in some way that matters."""
        rng = self.rng
        live = rng.choice(list(self.jobs.values()))
        worker = rng.randrange(len(live.job.workers))
        seq = rng.choice(live.waiting[worker])
        flags = Flag(0)
        for flag in Flag:
            if rng.random() < 0.03:
                flags |= flag
        header = Header(
            flags=flags,
            job=live.job.number,
            epoch=live.job.epoch % (1 << EPOCH_BITS),
            worker=worker,
            shape=self._shape(seq, rng.getrandbits(4)),
            slot=seq % live.job.slots,
            value_type=rng.choice(list(ValueType)),
            value_count=0 if (seq * 2654435761) % 16 == 0 else self.values,
            seq=seq,
            contributors=self._whose(live.job, worker),
            exponent=rng.getrandbits(8),
            next_exponent=rng.getrandbits(8),
            digest=rng.getrandbits(16),
            check=self.checks.getrandbits(32),
            path=self._path(live.job, worker),
            copy=rng.getrandbits(2),
        )
        if header.shape != Shape.SUM and self.grows and self.checks.random() < 0.6:
            header = replace(header, value_count=0)  # its worker has none to give
        if live.job.is_stream and self.grows and header.value_count and self.checks.random() < 0.4:
            header = replace(header, value_count=1)  # a block of zeros
        if live.job.claims is not None and self.checks.random() < 0.8:
            header = replace(header, flags=flags & ~Flag.RESEND, copy=0)  # resends take sums away
        if changes is None:
            header = replace(header, **mutate_header(rng, header, self.values))
        if header.value_count == 0 and not self.grows:
            header = replace(header, shape=Shape.SUM)
        payload = encode_header(header) + rng.randbytes(4 * header.value_count)
        at = live.job.workers[worker]
        tos = CE if rng.random() < 0.03 else rng.choice((0, 1, 2, 0xB8))
        frame = Frame(payload, at.ipv4, at.udp_port, tos=tos, identification=rng.getrandbits(16))
        return at.port, frame.build()

    def _shape(self, seq: int, other: int) -> int:
        """Most often the same of all packets of a chunk."""
        if self.checks.random() < 0.05:
            return other
        shapes = (Shape.SUM, Shape.SUM, Shape.SUM, Shape.SCATTER, Shape.GATHER, Shape.GATHER, 3)
        return shapes[(seq * 2246822519 >> 9) % len(shapes)]

    def _whose(self, job: ModelJob, worker: int) -> int:
        """Of a child that is a set, often all of it; sometimes others, too."""
        bits = job.bits_of(worker)
        if worker not in job.sets or self.rng.random() < 0.4:
            return bits
        return self.rng.getrandbits(MAX_WORKERS) & (bits if self.rng.random() < 0.95 else ~0)

    def _path(self, job: ModelJob, worker: int) -> int:
        """That of the worker, or of one somewhere below it, or any."""
        if job.parent is None or self.rng.random() < 0.1:
            return self.rng.getrandbits(PATH_BITS)
        return job.parent.ways[worker] | self.rng.getrandbits(PATH_BITS) & ~job.parent.path_mask

    def _answer(self, parent: Parent, sum_up: Header) -> PortFrame:
        """The result that a parent may have made of a sum: of those who ask, or for all."""
        rng = self.rng
        header = replace(
            sum_up,
            kind=Kind.RESULT,
            flags=sum_up.flags | (Flag.REPLAY if rng.random() < 0.4 else Flag(0)),
            contributors=rng.getrandbits(32),
        )
        if rng.random() < 0.1:
            header = replace(header, **mutate_header(rng, header, self.values))
        payload = encode_header(header) + rng.randbytes(4 * header.value_count)
        frame = Frame(payload, parent.at.ipv4, parent.at.udp_port, tos=rng.choice((0, 2, CE)))
        return parent.at.port, frame.build()

    def _mutated(self) -> PortFrame:
        port, data = self._contribution({})
        mutation: Callable[[random.Random, int, bytes], PortFrame] = self.rng.choice(MUTATIONS)
        port, data = mutation(self.rng, port, data)
        return port, without_udp_checksum(data)

    def observe(self, departures: list[PortFrame]) -> None:
        """Takes what left the switch: most of it reaches the workers."""
        for port, data in departures:
            payload = data[PAYLOAD_OFFSET:]
            if len(payload) < HEADER_BYTES or payload[0] not in (_RESULT, _CONTRIBUTION):
                continue
            live = self.jobs.get(int.from_bytes(payload[2:4], "big"))
            if live is None:
                continue
            if payload[0] == _CONTRIBUTION:
                if live.job.parent is not None and self.rng.random() < DELIVERED:
                    self.answers.append(self._answer(live.job.parent, decode_header(payload)))
                continue
            for worker in live.reached(port, payload[6]):
                if self.rng.random() < DELIVERED:  # each of several loses its copy by itself
                    live.deliver(worker, int.from_bytes(payload[12:16], "big"))

    def readmit(self) -> ModelJob:
        """Starts a random job over, in a newer epoch."""
        job = self.rng.choice(list(self.jobs.values())).job
        self.last_epoch += self.rng.choice((1, 1, 1, 5, 1 << EPOCH_BITS))
        job = replace(job, epoch=self.last_epoch)
        self.jobs[job.number] = self._live(job)
        return job
