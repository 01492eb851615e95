"""An exhaustive search over a job of mode `roce`: the switch is the peer of all queue pairs.

A message is several packets, each with a header of its own; there is a queue pair for each message
of a window. The network may lose, repeat and delay whatever was sent. Adapters are responders of
unreliable connections: a first packet begins a message, whatever its number, others must follow.
Linux's rxe loses a first packet that ends an open message together with that (``is_like_rxe``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ina.protocol.bth import Opcode
from ina.protocol.roce import opcode_of, psn_of
from ina.protocol.switch_model import Departure
from tests.protocol.moves import put
from tests.protocol.roce_slots import SentJob, SentSlots, Slots, Values
from tests.protocol.search import Model, Violation

Held = tuple[tuple[int, Values], ...]
"""Packets of a message, by chunk: what is in a posted buffer."""
Open = tuple[int, Held] | None
"""A message that is being received, with the number that must follow; None: there is none."""


class Landed(NamedTuple):
    """A result on its way to a worker."""

    receiver: int
    chunk: int
    values: Values


class UcWorker(NamedTuple):
    """A worker and its adapter."""

    done: tuple[int, ...]
    """By queue pair, how many of its messages the worker has."""
    open: tuple[Open, ...]
    memory: tuple[Values | None, ...]
    """By slot: of results that are written where the chunk is, to seed a bug."""
    told: frozenset[int]
    """Chunks that were written there, of which the host has not heard yet."""


class UcState(NamedTuple):
    """Everything that may differ between two moments."""

    workers: tuple[UcWorker, ...]
    slots: Slots
    results: frozenset[Landed]


@dataclass
class UcSystem(Model[UcState]):
    """The job, its switch, adapters and workers. ``psns``: numbers of packets that there are. The
    last fields exist to seed bugs."""

    job: SentJob
    segments: int = 1
    psns: int = 1 << 24
    is_like_rxe: bool = False
    writes: bool = False
    first_speaks_for_all: bool = False
    has_psns: bool = True
    _slots: SentSlots = field(init=False)

    def __post_init__(self) -> None:
        self._slots = SentSlots(self.job)

    @cached_property
    def queues(self) -> int:
        """Of each worker."""
        return self.job.window // self.segments

    def start(self) -> UcState:
        worker = UcWorker(
            (0,) * self.queues, (None,) * self.queues, (None,) * 2 * self.job.window, frozenset()
        )
        return UcState((worker,) * self.job.workers, self._slots.empty, frozenset())

    def message(self, queue: int, done: int) -> range:
        """Chunks of a queue pair's next message."""
        first = done * self.job.window + queue * self.segments
        return range(min(first, self.job.chunks), min(first + self.segments, self.job.chunks))

    def moves(self, state: UcState) -> Iterator[tuple[object, UcState]]:
        for number, worker in enumerate(state.workers):
            for queue, done in enumerate(worker.done):
                for count in range(done + 1):
                    for chunk in self.message(queue, count):
                        yield (
                            f"chunk {chunk} of worker {number}",
                            self._arrive(state, number, chunk),
                        )
        for result in state.results:
            after = self._receive(state.workers[result.receiver], result)
            workers = put(state.workers, result.receiver, after)
            yield f"result {result.chunk} to {result.receiver}", state._replace(workers=workers)
        for number, worker in enumerate(state.workers):
            for chunk in worker.told:
                after = self._read(worker, chunk)
                workers = put(state.workers, number, after)
                yield f"host {number} reads {chunk}", state._replace(workers=workers)

    def check(self, state: UcState) -> None:
        """All send again what they wait for, nothing is lost: everybody comes to the end."""
        if self.writes:
            return
        workers, slots = state.workers, state.slots
        while any(
            self.message(queue, done)
            for worker in workers
            for queue, done in enumerate(worker.done)
        ):
            before = workers, slots
            for number, worker in enumerate(workers):
                for queue, done in enumerate(worker.done):
                    for chunk in self.message(queue, done):
                        _, slots, departures = self._slots.arrive(slots, number, chunk)
                        for result in self._landing(departures):
                            after = self._receive(workers[result.receiver], result)
                            workers = put(workers, result.receiver, after)
            if (workers, slots) == before:
                raise Violation("nobody gets on")

    def _arrive(self, state: UcState, worker: int, chunk: int) -> UcState:
        _, slots, departures = self._slots.arrive(state.slots, worker, chunk)
        results = state.results | set(self._landing(departures))
        return state._replace(slots=slots, results=results)

    def _landing(self, departures: tuple[Departure, ...]) -> list[Landed]:
        return [Landed(it.header.worker, self.job.chunk(it.header), it.values) for it in departures]

    def _receive(self, worker: UcWorker, result: Landed) -> UcWorker:
        """The adapter gets a result, as what its opcode and number make of it."""
        chunk, seq = result.chunk, self.job.seq(result.chunk)
        queue = chunk % self.job.window // self.segments
        if self.writes:  # no buffer is asked for
            memory = put(worker.memory, chunk % len(worker.memory), result.values)
            is_next = chunk in self.message(queue, worker.done[queue])
            told = worker.told | {chunk} if is_next else worker.told
            return worker._replace(memory=memory, told=told)
        psn = psn_of(seq) % self.psns if self.has_psns else 0
        opcode = opcode_of(seq, self.segments)
        closed = worker._replace(open=put(worker.open, queue, None))
        had = worker.open[queue]
        if opcode in (Opcode.UC_SEND_FIRST, Opcode.UC_SEND_ONLY):
            if had is not None and self.is_like_rxe:
                return closed
            had = (psn, ())
        elif had is None or had[0] != psn:
            return closed
        held = (*had[1], (chunk, result.values))
        if opcode in (Opcode.UC_SEND_FIRST, Opcode.UC_SEND_MIDDLE):
            return worker._replace(open=put(worker.open, queue, ((psn + 1) % self.psns, held)))
        return self._take(closed, queue, held)

    def _take(self, worker: UcWorker, queue: int, held: Held) -> UcWorker:
        """The host gets a message: one that it does not wait for is posted again."""
        if self.first_speaks_for_all:
            held = tuple((held[0][0] + place, values) for place, (_, values) in enumerate(held))
        done = worker.done[queue]
        if [chunk for chunk, _ in held] != list(self.message(queue, done)):
            return worker
        for chunk, values in held:
            self._check_sum(chunk, values)
        return worker._replace(done=put(worker.done, queue, done + 1))

    def _read(self, worker: UcWorker, chunk: int) -> UcWorker:
        """The host looks where it was told that a chunk was written."""
        values = worker.memory[chunk % len(worker.memory)]
        assert values is not None
        self._check_sum(chunk, values)
        queue = chunk % self.job.window // self.segments
        done = put(worker.done, queue, worker.done[queue] + 1)
        return worker._replace(done=done, told=worker.told - {chunk})

    def _check_sum(self, chunk: int, values: Values) -> None:
        if values != self.job.total(chunk):
            raise Violation(f"chunk {chunk} is {values}, not {self.job.total(chunk)}")
