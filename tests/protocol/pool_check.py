"""An exhaustive search over everything a network can do to one job of mode `pool`.

A state needs no queues: which contributions exist follows from how far the workers are.

A window of one chunk (two slots) is enough: the lanes of a wider window share no slot and no state.
Each contribution is a vector with a one in the place of its own (epoch, chunk, worker), so that a
sum tells exactly what it holds. A stranger, who is not admitted, sends too.

A result that workers share is one for each of them here: a network delivers it to each or not.

A forger is a stranger whom the switch takes for worker 0. Then slots may hold anything, and jobs
need not end; but no worker takes a sum that is not its workers'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from ina.protocol import serial
from ina.protocol.check_model import CheckModel, CheckRound
from ina.protocol.codec import Header
from ina.protocol.slot_model import DIGEST_MODULUS, Slot
from ina.protocol.spec import ALL_WORKERS
from ina.protocol.switch_model import (
    Attachment,
    Departure,
    Dropped,
    ModelJob,
    Sharing,
    SwitchModel,
)
from tests.protocol.moves import SlotState, frozen, put
from tests.protocol.search import Model, Numbered, Progress, Violation

FIRST_EPOCH = 7
STRANGER = Attachment(port=9, ipv4=9, udp_port=9)
WORKER_SHIFT = 8  # each worker counts in a byte of its own


@dataclass(frozen=True, eq=False)
class Packet:
    """A contribution on the wire: the same is the same object."""

    sender: Attachment
    header: Header
    values: tuple[int, ...]
    name: str

    def __str__(self) -> str:
        return f"{self.name} arrives"


class Result(NamedTuple):
    """A result on the wire, on its way to a worker."""

    worker: int
    epoch: int
    chunk: int


class State(NamedTuple):
    """Everything that may differ between two moments."""

    epoch: int
    done: tuple[int, ...]  # chunks whose result each worker has, in this epoch
    old_done: tuple[int, ...] | None  # the same at the end of the first epoch, after a restart
    slots: tuple[int, ...]  # the number of each one's state
    results: frozenset[Result]


@dataclass
class System(Model[State]):
    """The job, the switch and the workers. The last fields exist to seed bugs."""

    workers: int
    chunks: int
    restart: bool = False
    first_seq: int = 2**32 - 2  # the numbers wrap around on the way
    slot_count: int = 2
    listening: int = 0  # the first so many workers share results; then all are behind one port
    switch_type: type[SwitchModel] = SwitchModel
    slot_type: type[Slot] = Slot
    worker_checks_epoch: bool = True
    forger: bool = False
    worker_verifies: bool = True
    _packets: dict[tuple[int, int, int], Packet] = field(default_factory=dict)
    _verified: dict[Any, bool] = field(default_factory=dict)
    _slot_states: Numbered[SlotState] = field(default_factory=Numbered)
    _moved: dict[Any, tuple[int, list[Result]]] = field(default_factory=dict)
    _in_flight: dict[Any, tuple[Packet, ...]] = field(default_factory=dict)

    @cached_property
    def attachments(self) -> tuple[Attachment, ...]:
        return tuple(
            Attachment(0 if self.listening else worker, worker, worker)
            for worker in range(self.workers)
        )

    @cached_property
    def sharing(self) -> Sharing | None:
        return Sharing(frozenset(range(self.listening)), 0xEF000001) if self.listening else None

    @cached_property
    def switches(self) -> dict[int, SwitchModel]:
        """The switch as it is programmed in each epoch; slot states are put into it."""
        switches = {}
        for epoch in (FIRST_EPOCH, FIRST_EPOCH + 1):
            switches[epoch] = self.switch_type(self.slot_count, 2 * self.chunks)
            job = ModelJob(1, epoch, 0, self.slot_count, self.attachments, self.sharing)
            switches[epoch].install(job)
        return switches

    def start(self) -> State:
        slot = self.slot_type(values=(0,) * 2 * self.chunks)
        slots = (self._slot_states.number(frozen(slot)),) * self.slot_count
        return State(FIRST_EPOCH, (0,) * self.workers, None, slots, frozenset())

    def place(self, epoch: int, chunk: int) -> int:
        return (epoch - FIRST_EPOCH) * self.chunks + chunk

    def digest(self, epoch: int, worker: int, chunk: int) -> int:
        """Another one for each contribution, so that a sum tells which are in it, and how often."""
        digest = 3 << 2 * self.place(epoch, chunk)
        for _ in range(worker):
            digest = digest * 5 + 1
        return digest % DIGEST_MODULUS

    @cached_property
    def checks(self) -> dict[int, CheckModel]:
        """By epoch."""
        key, values = b"a key of 16 byte", 2 * self.chunks
        return {
            epoch: CheckModel(key, epoch, self.workers, values)
            for epoch in (FIRST_EPOCH, FIRST_EPOCH + 1)
        }

    def round(self, chunk: int) -> CheckRound:
        return CheckRound(chunk, value_count=2 * self.chunks)

    def chunk(self, header: Header) -> int:
        return serial.add(header.seq, -self.first_seq)

    def packet(self, epoch: int, worker: int, chunk: int) -> Packet:
        key = (epoch, worker, chunk)
        if key not in self._packets:
            self._packets[key] = self._packet(*key)
        return self._packets[key]

    def strangers(self, epoch: int, chunk: int) -> Packet:
        key = (epoch, STRANGER.port, chunk)
        if key not in self._packets:
            self._packets[key] = self._strangers(epoch, chunk)
        return self._packets[key]

    def _packet(self, epoch: int, worker: int, chunk: int) -> Packet:
        values = [0] * 2 * self.chunks
        values[self.place(epoch, chunk)] = 1 << WORKER_SHIFT * worker
        header = Header(
            job=1,
            epoch=epoch,
            worker=worker,
            slot=chunk % self.slot_count,
            seq=serial.add(self.first_seq, chunk),
            value_count=len(values),
            digest=self.digest(epoch, worker, chunk),
            check=self.checks[epoch].contribute(self.round(chunk), worker, values),
        )
        name = f"worker {worker}'s contribution to epoch {epoch} chunk {chunk}"
        return Packet(self.attachments[worker], header, tuple(values), name)

    def _strangers(self, epoch: int, chunk: int) -> Packet:
        """What somebody else sends in worker 0's name: other values."""
        packet = self.packet(epoch, 0, chunk)
        values = tuple(value << WORKER_SHIFT * self.workers for value in packet.values)
        name = f"the forger's {packet.name}" if self.forger else f"the stranger's {packet.name}"
        if self.forger:  # it has seen worker 0's packet, and says of the rest what that says
            return replace(packet, values=values, name=name)
        header = replace(packet.header, digest=1, check=1)
        return Packet(STRANGER, header, values, name)

    def in_flight(self, state: State) -> tuple[Packet, ...]:
        """Every contribution that has been sent so far, and the stranger's."""
        key = (state.epoch, state.done, state.old_done)
        if key not in self._in_flight:
            self._in_flight[key] = tuple(self._sent(state))
        return self._in_flight[key]

    def _sent(self, state: State) -> Iterator[Packet]:
        sent = {state.epoch: state.done}
        if state.old_done is not None:
            sent[FIRST_EPOCH] = state.old_done
        for epoch, done in sent.items():
            for worker in range(self.workers):
                for chunk in range(min(done[worker] + 1, self.chunks)):
                    yield self.packet(epoch, worker, chunk)
        for chunk in range(min(max(state.done) + 1, self.chunks)):
            yield self.strangers(state.epoch, chunk)

    def arrive(self, state: State, packet: Packet) -> tuple[State, list[Result]]:
        """The switch gets a contribution; checks what leaves it."""
        index = packet.header.slot
        before = state.slots[index]
        key = (state.epoch, before, packet)
        if key not in self._moved:
            self._moved[key] = self._run_switch(state.epoch, before, packet)
        after, results = self._moved[key]
        if len(results) > 1 and results[0] in state.results:
            raise Violation(f"chunk {results[0].chunk} went to all twice")
        if after == before and state.results.issuperset(results):
            return state, results
        slots = put(state.slots, index, after)
        return state._replace(slots=slots, results=state.results | set(results)), results

    def _run_switch(self, epoch: int, before: int, packet: Packet) -> tuple[int, list[Result]]:
        switch, index = self.switches[epoch], packet.header.slot
        switch.slots[index] = self.slot_type(*self._slot_states[before])
        try:
            job = switch.admit(packet.sender, packet.header)
            departures = switch.contribute(job, packet.header, packet.values)
        except Dropped:
            departures = []
        results = [result for it in departures for result in self._check(it, epoch)]
        return self._slot_states.number(frozen(switch.slots[index])), results

    def _check(self, departure: Departure, epoch: int) -> list[Result]:
        """Promises 1 and 2: values and digest are the contributions', each once, and no others.

        With a forger: of those that a worker takes.
        """
        chunk = self.chunk(departure.header)
        verifies = self._verifies(departure, epoch, chunk)
        if self.forger and self.worker_verifies and not verifies:
            return []
        expected = [0] * 2 * self.chunks
        expected[self.place(epoch, chunk)] = sum(
            1 << WORKER_SHIFT * worker for worker in range(self.workers)
        )
        if departure.values != tuple(expected):
            got = [f"{value:#x}" for value in departure.values]
            raise Violation(f"result of epoch {epoch} chunk {chunk} holds {got}")
        digests = sum(self.digest(epoch, worker, chunk) for worker in range(self.workers))
        if departure.header.digest != digests % DIGEST_MODULUS:
            raise Violation(
                f"result of epoch {epoch} chunk {chunk} has digest {departure.header.digest}"
            )
        if not verifies:
            raise Violation(f"result of epoch {epoch} chunk {chunk} does not verify")
        worker = departure.header.worker
        reached = range(self.listening) if worker == ALL_WORKERS else (worker,)
        return [Result(each, departure.header.epoch, chunk) for each in reached]

    def _verifies(self, departure: Departure, epoch: int, chunk: int) -> bool:
        check = departure.header.check
        key = (epoch, chunk, departure.values, check)
        if key not in self._verified:
            judge = self.checks[epoch]
            self._verified[key] = judge.verify(self.round(chunk), departure.values, check)
        return self._verified[key]

    def accept(self, state: State, result: Result) -> State:
        """A worker gets a result: it takes the one it waits for, and only that one."""
        if result.chunk != state.done[result.worker]:
            return state
        if result.epoch != state.epoch:
            if self.worker_checks_epoch:
                return state
            raise Violation(f"worker {result.worker} took a result of epoch {result.epoch}")
        return state._replace(done=put(state.done, result.worker, result.chunk + 1))

    def moves(self, state: State) -> Iterator[tuple[object, State]]:
        for packet in self.in_flight(state):
            yield packet, self.arrive(state, packet)[0]
        for result in state.results:
            yield f"{result} arrives", self.accept(state, result)
        if self.restart and state.old_done is None:
            fresh = (0,) * self.workers
            yield (
                "restart",
                state._replace(epoch=state.epoch + 1, old_done=state.done, done=fresh),
            )

    def check(self, state: State) -> None:
        """Promise 3: with all that is in flight lost, resending what is open ends the job."""
        if not self.forger:
            self._progress.check(state._replace(results=frozenset(), old_done=None))

    @cached_property
    def _progress(self) -> Progress[State]:
        return Progress(
            self._resent,
            has_ended=lambda state: min(state.done) >= self.chunks,
            tell=lambda state: state.done,
        )

    def _resent(self, state: State) -> State:
        for worker in range(self.workers):
            if state.done[worker] < self.chunks:
                packet = self.packet(state.epoch, worker, state.done[worker])
                state, results = self.arrive(state._replace(results=frozenset()), packet)
                for result in results:
                    state = self.accept(state, result)
        return state._replace(results=frozenset())
