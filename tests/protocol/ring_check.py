"""An exhaustive search over a job of mode `transparent`: a ring of adapters that know of no switch.

Each has a reliable connection to the next one. It sends in order, goes back as far as it likes, and
takes the next number alone. The switch holds each packet back and answers for all.

A worker posts chunk s + window when it knows that chunk s is summed: because the sum has come to
it, or because its own packet is acknowledged, which only the sum in its place can have caused. What
it must know is ``credit``, of both (how many are acknowledged, how many have come). All must go by
the same: where one is content with its own sum, and its next one with an acknowledgement, nobody
keeps the sum that this next one may lack (``either``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ina.protocol.roce import psn_of
from ina.protocol.slot_model import Outcome
from tests.protocol.moves import put
from tests.protocol.roce_slots import SentJob, SentSlots, Slots, Values
from tests.protocol.search import Model, Violation

FIRST_PSN = 0xFF_FFFF
"""Of chunk 0, on all connections."""

Credit = Callable[[int, int], int]


def both(acknowledged: int, received: int) -> int:
    return min(acknowledged, received)


def own_sums(acknowledged: int, received: int) -> int:
    return received


def acknowledgements(acknowledged: int, received: int) -> int:
    return acknowledged


def either(acknowledged: int, received: int) -> int:
    return max(acknowledged, received)


def no_credit(acknowledged: int, received: int) -> int:
    return 1 << 30


class OnFlow(NamedTuple):
    """A packet on its way from the switch to the end of a flow."""

    receiver: int
    psn: int
    values: Values


class RingWorker(NamedTuple):
    """How many chunks a worker has posted, how many of them the next one has acknowledged, and how
    many have come from the one before it."""

    posted: int
    acknowledged: int
    received: int


class RingState(NamedTuple):
    """Everything that may differ between two moments."""

    workers: tuple[RingWorker, ...]
    slots: Slots
    packets: frozenset[OnFlow]
    reboots: int
    """That are to come yet."""
    sent: tuple[int, ...]
    """By receiver, what was sent to it: for a bug."""


@dataclass
class RingSystem(Model[RingState]):
    """The job, its switch, adapters and workers. The last fields exist to seed bugs."""

    job: SentJob
    reboots: int = 0
    credit: Credit = both
    forwards_when_empty: bool = False
    counts_psns: bool = False
    _slots: SentSlots = field(init=False)

    def __post_init__(self) -> None:
        self._slots = SentSlots(self.job)

    def start(self) -> RingState:
        zeros = (0,) * self.job.workers
        workers = (RingWorker(0, 0, 0),) * self.job.workers
        return RingState(workers, self._slots.empty, frozenset(), self.reboots, zeros)

    def next(self, worker: int) -> int:
        """Whom a worker sends to."""
        return (worker + 1) % self.job.workers

    def may_post(self, worker: RingWorker) -> bool:
        """Whether it has credit for a chunk more."""
        known = self.credit(worker.acknowledged, worker.received)
        return worker.posted < min(self.job.chunks, known + self.job.window)

    def moves(self, state: RingState) -> Iterator[tuple[object, RingState]]:
        for number, worker in enumerate(state.workers):
            yield from self._moves_of(state, number, worker)
        for packet in state.packets:
            workers = self._receive(state.workers, packet)
            yield f"{packet.psn:#x} to {packet.receiver}", state._replace(workers=workers)
        if state.reboots:
            after = state._replace(slots=self._slots.empty, reboots=state.reboots - 1)
            yield "the switch reboots", after

    def _moves_of(
        self, state: RingState, number: int, worker: RingWorker
    ) -> Iterator[tuple[object, RingState]]:
        def now(**changes: int) -> RingState:
            return state._replace(workers=put(state.workers, number, worker._replace(**changes)))

        if self.may_post(worker):
            yield f"{number} posts {worker.posted}", now(posted=worker.posted + 1)
        if worker.acknowledged < state.workers[self.next(number)].received:
            after = now(acknowledged=worker.acknowledged + 1)
            yield f"{number} is acknowledged {worker.acknowledged}", after
        for chunk in range(worker.posted):  # now, again, or late
            slots, packets, sent = self._answer(state.slots, state.sent, number, chunk)
            after = state._replace(slots=slots, packets=state.packets | set(packets), sent=sent)
            yield f"chunk {chunk} of {number}", after
        if self.forwards_when_empty and worker.posted and state.reboots < self.reboots:
            chunk = worker.posted - 1
            raw = OnFlow(self.next(number), self._psn(chunk), self.job.part(number, chunk))
            after = state._replace(packets=state.packets | {raw})
            yield f"{number}'s passes as it is", after

    def check(self, state: RingState) -> None:
        """All go back and send again, nothing is lost: everybody comes to the end.

        Not behind a switch that has lost its slots: what was acknowledged is not sent again, so
        there the job ends with an error, but with no wrong sum.
        """
        if state.reboots != self.reboots:
            return
        workers, slots, sent = state.workers, state.slots, state.sent
        before = None
        while (workers, slots) != before:
            before = workers, slots
            for number in range(self.job.workers):
                while self.may_post(workers[number]):
                    more = workers[number]._replace(posted=workers[number].posted + 1)
                    workers = put(workers, number, more)
                for chunk in range(workers[number].acknowledged, workers[number].posted):
                    slots, packets, sent = self._answer(slots, sent, number, chunk)
                    for packet in packets:
                        workers = self._receive(workers, packet)
                        workers = self._acknowledge(workers, packet.receiver)
        if any(worker != (self.job.chunks,) * 3 for worker in workers):
            raise Violation(f"nobody gets on: {[tuple(it) for it in workers]}")

    def _psn(self, chunk: int) -> int:
        return psn_of(self.job.seq(chunk), FIRST_PSN)

    def _answer(
        self, slots: Slots, sent: tuple[int, ...], worker: int, chunk: int
    ) -> tuple[Slots, list[OnFlow], tuple[int, ...]]:
        """What leaves the switch for a packet of a worker's: by the flow of each result."""
        outcome, slots, departures = self._slots.arrive(slots, worker, chunk)
        packets = []
        for it in departures:
            receiver, psn = self.next(it.header.worker), self._psn(self.job.chunk(it.header))
            if self.counts_psns:
                if outcome is not Outcome.RESULT:
                    continue
                psn = self._psn(sent[receiver])
                sent = put(sent, receiver, sent[receiver] + 1)
            packets.append(OnFlow(receiver, psn, it.values))
        return slots, packets, sent

    def _receive(self, workers: tuple[RingWorker, ...], packet: OnFlow) -> tuple[RingWorker, ...]:
        """The adapter: only the next number is taken."""
        worker = workers[packet.receiver]
        chunk = worker.received
        if chunk >= self.job.chunks or packet.psn != self._psn(chunk):
            return workers
        if packet.values != self.job.total(chunk):
            raise Violation(
                f"worker {packet.receiver} takes {packet.values} for chunk {chunk},"
                f" not {self.job.total(chunk)}"
            )
        return put(workers, packet.receiver, worker._replace(received=chunk + 1))

    def _acknowledge(
        self, workers: tuple[RingWorker, ...], receiver: int
    ) -> tuple[RingWorker, ...]:
        """Its sender hears of all that the receiver has."""
        sender = (receiver - 1) % self.job.workers
        heard = workers[sender]._replace(acknowledged=workers[receiver].received)
        return put(workers, sender, heard)
