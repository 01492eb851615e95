"""A job's slots on a switch that sums SENDs, for the searches of modes `roce` and `transparent`.

A worker's part of a chunk is a one in the chunk's place, in a byte of the worker's own: so a sum
tells what it holds. Chunks are numbered from 0; their sequence numbers wrap around on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from ina.protocol import serial
from ina.protocol.codec import Header
from ina.protocol.slot_model import Outcome, Slot
from ina.protocol.switch_model import Attachment, Departure, Dropped, ModelJob, SwitchModel
from tests.protocol.moves import SlotState, frozen, put
from tests.protocol.search import Numbered

EPOCH = 7
FIRST_SEQ = 2**32 - 4
"""Of chunk 0: chunk 4 is number 0."""
WORKER_SHIFT = 8

Values = tuple[int, ...]
Slots = tuple[int, ...]
"""The number of each one's state."""
Arrived = tuple[Outcome | None, Slots, tuple[Departure, ...]]
"""What became of a contribution (None: it was dropped), the slots after it, and what leaves."""


@dataclass(frozen=True)
class SentJob:
    """A job, and by what rules its switch sums. The last fields exist to seed bugs."""

    workers: int
    chunks: int
    window: int = 1
    versions: int = 2
    slot_type: type[Slot] = Slot
    switch_type: type[SwitchModel] = SwitchModel

    def seq(self, chunk: int) -> int:
        """As the wire has it."""
        return serial.add(FIRST_SEQ, chunk)

    def chunk(self, header: Header) -> int:
        """Of a packet."""
        return serial.add(header.seq, -FIRST_SEQ)

    def part(self, worker: int, chunk: int) -> Values:
        """What a worker has of a chunk."""
        return self._at(chunk, 1 << WORKER_SHIFT * worker)

    def total(self, chunk: int) -> Values:
        """All workers' parts, each once."""
        return self._at(chunk, sum(1 << WORKER_SHIFT * worker for worker in range(self.workers)))

    def _at(self, chunk: int, value: int) -> Values:
        return tuple(value if place == chunk else 0 for place in range(self.chunks))


@dataclass
class SentSlots:
    """What the switch does with each contribution, by the reference model."""

    job: SentJob
    _states: Numbered[SlotState] = field(default_factory=Numbered)
    _arrived: dict[tuple[int, int, int], tuple[Outcome | None, int, tuple[Departure, ...]]] = field(
        default_factory=dict
    )

    @cached_property
    def empty(self) -> Slots:
        """As at power-on."""
        slot = self.job.slot_type(values=(0,) * self.job.chunks)
        return (self._states.number(frozen(slot)),) * self.count

    @property
    def count(self) -> int:
        """Of the job's slots."""
        return self.job.versions * self.job.window

    def arrive(self, slots: Slots, worker: int, chunk: int) -> Arrived:
        """A worker's packet comes."""
        index = chunk % self.count
        key = (slots[index], worker, chunk)
        if key not in self._arrived:
            self._arrived[key] = self._run(*key)
        outcome, after, departures = self._arrived[key]
        return outcome, put(slots, index, after), departures

    @cached_property
    def _switch(self) -> SwitchModel:
        job = self.job
        switch = job.switch_type(self.count, job.chunks)
        at = tuple(Attachment(worker, worker, worker) for worker in range(job.workers))
        switch.install(ModelJob(1, EPOCH, 0, self.count, at))
        return switch

    def _run(
        self, before: int, worker: int, chunk: int
    ) -> tuple[Outcome | None, int, tuple[Departure, ...]]:
        job, switch, index = self.job, self._switch, chunk % self.count
        switch.slots[index] = job.slot_type(*self._states[before])
        switch.outcomes.clear()
        header = Header(
            job=1,
            epoch=EPOCH,
            worker=worker,
            slot=index,
            seq=job.seq(chunk),
            value_count=job.chunks,
        )
        departures: tuple[Departure, ...] = ()
        outcome = None
        try:
            admitted = switch.admit(Attachment(worker, worker, worker), header)
            departures = tuple(switch.contribute(admitted, header, job.part(worker, chunk)))
            outcome = next(iter(switch.outcomes))[1]
        except Dropped:
            pass
        return outcome, self._states.number(frozen(switch.slots[index])), departures
