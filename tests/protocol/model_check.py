"""An exhaustive search over everything a network can do to one job of mode `pool`.

The network is a set that packets enter when they are sent and never leave: at any moment any of
them may arrive, again and again (duplication, delay without bound, reordering), or never (loss).
So a state needs no queues: which contributions exist follows from how far the workers are.

A window of one chunk (two slots) is enough: the lanes of a wider window share no slot and no state.
Each contribution is a vector with a one in the place of its own (epoch, chunk, worker), so that a
sum tells exactly what it holds. A stranger, who is not admitted, sends too.

A result that workers share is one for each of them here: a network delivers it to each or not.

A forger is a stranger whom the switch takes for worker 0. Then slots may hold anything, and jobs
need not end; but no worker takes a sum that is not its workers'.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

from ina.protocol import serial
from ina.protocol.check_model import CheckModel, CheckRound
from ina.protocol.codec import Header
from ina.protocol.slot_model import DIGEST_MODULUS, Slot, Tag
from ina.protocol.spec import ALL_WORKERS
from ina.protocol.switch_model import (
    Attachment,
    Departure,
    Dropped,
    ModelJob,
    Sharing,
    SwitchModel,
)

FIRST_EPOCH = 7
STRANGER = Attachment(port=9, ipv4=9, udp_port=9)
WORKER_SHIFT = 8  # each worker counts in a byte of its own

SlotState = tuple[Any, ...]
S = TypeVar("S")  # a state, whatever it is


class Violation(AssertionError):  # noqa: N818 (a finding, not a failure of the search)
    """A promise that does not hold, with the shortest way there."""


@dataclass(frozen=True)
class Packet:
    """A contribution on the wire."""

    sender: Attachment
    header: Header
    values: tuple[int, ...]


@dataclass(frozen=True)
class Result:
    """A result on the wire, on its way to a worker."""

    worker: int
    epoch: int
    chunk: int


@dataclass(frozen=True)
class State:
    """Everything that may differ between two moments."""

    epoch: int
    done: tuple[int, ...]  # chunks whose result each worker has, in this epoch
    old_done: tuple[int, ...] | None  # the same at the end of the first epoch, after a restart
    slots: tuple[SlotState, ...]
    results: frozenset[Result]


@dataclass
class System:
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
    _known: dict[Any, tuple[SlotState, list[Departure]]] = field(default_factory=dict)
    _settled: set[Any] = field(default_factory=set)

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
        slots = (_freeze(slot),) * self.slot_count
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
        return Packet(self.attachments[worker], header, tuple(values))

    def strangers(self, epoch: int, chunk: int) -> Packet:
        """What somebody else sends in worker 0's name: other values."""
        packet = self.packet(epoch, 0, chunk)
        values = tuple(value << WORKER_SHIFT * self.workers for value in packet.values)
        if self.forger:  # it has seen worker 0's packet, and says of the rest what that says
            return replace(packet, values=values)
        header = replace(packet.header, digest=1, check=1)
        return replace(packet, sender=STRANGER, header=header, values=values)

    def in_flight(self, state: State) -> Iterator[Packet]:
        """Every contribution that has been sent so far, and the stranger's."""
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
        if key not in self._known:
            self._known[key] = self._run_switch(state.epoch, before, packet)
        after, departures = self._known[key]
        results = [
            result for departure in departures for result in self._check(departure, state.epoch)
        ]
        if len(results) > 1 and results[0] in state.results:
            raise Violation(f"chunk {results[0].chunk} went to all twice")
        if after == before and state.results.issuperset(results):
            return state, results
        slots = (*state.slots[:index], after, *state.slots[index + 1 :])
        return replace(state, slots=slots, results=state.results | set(results)), results

    def _run_switch(
        self, epoch: int, before: SlotState, packet: Packet
    ) -> tuple[SlotState, list[Departure]]:
        switch, index = self.switches[epoch], packet.header.slot
        switch.slots[index] = self.slot_type(*before)
        try:
            job = switch.admit(packet.sender, packet.header)
            departures = switch.contribute(job, packet.header, packet.values)
        except Dropped:
            departures = []
        return _freeze(switch.slots[index]), departures

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
        done = list(state.done)
        done[result.worker] += 1
        return replace(state, done=tuple(done))

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        for packet in self.in_flight(state):
            header = packet.header
            who = "stranger" if packet.sender == STRANGER else f"worker {header.worker}"
            yield (
                f"{who}'s contribution to epoch {header.epoch} chunk {self.chunk(header)} arrives",
                self.arrive(state, packet)[0],
            )
        for result in state.results:
            yield f"{result} arrives", self.accept(state, result)
        if self.restart and state.old_done is None:
            fresh = (0,) * self.workers
            yield "restart", replace(state, epoch=state.epoch + 1, old_done=state.done, done=fresh)

    def check_progress(self, state: State) -> None:
        """Promise 3: with all that is in flight lost, resending what is open ends the job."""
        passed = []
        if self.forger:
            return
        while min(state.done) < self.chunks:
            key = (state.epoch, state.done, state.slots)
            if key in self._settled:
                break
            if key in passed:
                raise Violation(
                    f"no progress: workers have {state.done} chunks, resending for ever"
                )
            passed.append(key)
            for worker in range(self.workers):
                if state.done[worker] < self.chunks:
                    packet = self.packet(state.epoch, worker, state.done[worker])
                    state, results = self.arrive(replace(state, results=frozenset()), packet)
                    for result in results:
                        state = self.accept(state, result)
        self._settled.update(passed)


class Searched(Protocol[S]):
    """What :func:`search` needs to know of a system."""

    def start(self) -> S: ...

    def successors(self, state: S) -> Iterator[tuple[object, S]]:
        """What may happen next; ``str`` of the first says what that is."""
        ...

    def check_progress(self, state: S) -> None:
        """Raises Violation if the job cannot end any more."""
        ...


def search(system: Searched[S]) -> int:
    """Visits every reachable state; returns how many. Raises Violation with the shortest trace."""
    start = system.start()
    came_from: dict[S, tuple[S, object] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        try:
            system.check_progress(state)
            for step, after in system.successors(state):
                if after not in came_from:
                    came_from[after] = (state, step)
                    queue.append(after)
        except Violation as violation:
            raise Violation("\n  ".join([str(violation), *_trace(came_from, state)])) from None
    return len(came_from)


def _trace(came_from: dict[S, tuple[S, object] | None], state: S) -> list[str]:
    steps: list[str] = []
    origin = came_from[state]
    while origin is not None:
        steps.append(str(origin[1]))
        origin = came_from[origin[0]]
    return steps[::-1]


def _freeze(slot: Slot) -> SlotState:
    owner, *rest = astuple(slot)
    return (Tag(*owner), *rest)
