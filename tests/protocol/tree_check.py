"""An exhaustive search over everything a network can do to one job of a tree of switches.

Each switch is the reference model with the entries of its place, each packet is bytes to it, and
results find their way down by the model's own ``pass_down``. As in ``model_check``, the network is
a set that packets enter when they are sent and never leave: each may arrive at any later moment,
again and again, or never. Beyond that

* with ``restart`` the job is admitted anew once: each switch and each worker learns the new epoch
  at a moment of its own;
* with ``reboots`` some switch, so many times, loses its registers at any moment;
* worker 0 sends each packet once more with a path that leads to nobody and with the flag REPLAY;
* strangers send contributions and results in others' names.

Promises: *sums* (each result that reaches a worker is whole, and of its job, epoch, slot and round:
:meth:`TreeSystem._judge`), the *way back* (:meth:`TreeSystem._check_way_back`) and *progress*
(:meth:`TreeSystem.check_progress`).

Two things keep the states few, and lose none that could break a promise:

* What only adds packets to the network happens at once. A larger set allows all that the smaller
  one does, for any packet of it may be lost; and it is reached by steps of its own.
* What has reached a worker is remembered as that alone: whose packet brought it has been checked. A
  result for all that a switch has passed down is forgotten: to pass it down again adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

from ina.protocol import serial
from ina.protocol.codec import encode
from ina.protocol.slot_model import Slot, Tag
from ina.protocol.spec import Flag, Kind
from ina.protocol.switch_model import EPOCH_BITS, Departure, SwitchModel
from tests.protocol.model_check import SlotState, Violation
from tests.protocol.tree_fabric import FIRST_SLOT, WORKER, Fabric
from tests.protocol.tree_traffic import FIRST_EPOCH, Arrival, Packet, Traffic

T = TypeVar("T")


class Worker(NamedTuple):
    """How far one is: its epoch, and by lane how many chunks of it have their results."""

    epoch: int
    done: tuple[int, ...]


class State(NamedTuple):
    """Everything that may differ between two moments."""

    workers: tuple[Worker, ...]
    installed: tuple[int, ...]  # the epoch that each switch was told
    slots: tuple[int, ...]  # the number of each one's state: all of switch 0, all of switch 1, ...
    network: int  # a bit for each packet or arrival, by its number
    reboots: int  # that may still happen


class Events(NamedTuple):
    """What the packets for one slot of a switch may do to it."""

    added: int  # to the network, by those that leave the slot as it is
    spent: int
    changes: tuple[tuple[int, int, int], ...]  # the packet, the slot's state after it, what it adds


class Step(NamedTuple):
    """A packet arrives; a sentence only when it is printed."""

    system: TreeSystem
    number: int

    def __str__(self) -> str:
        return f"{self.system.known[self.number]} arrives"


@dataclass
class TreeSystem:
    """The job, its tree and the network. The last fields exist to seed bugs."""

    parents: tuple[int | None, ...]
    workers: tuple[int, ...]
    chunks: int
    window: int = 1
    behind: Mapping[int, int] = field(default_factory=dict)
    restart: bool = False
    reboots: int = 0
    live: bool = True  # whether progress is promised; after reboots, by a restart if it must be
    first_seq: int | None = None  # a multiple of the slots; None: numbers wrap after these
    slots: int = 0  # 0: 2 * window
    switch_type: type[SwitchModel] = SwitchModel
    root_slot: type[Slot] = Slot
    inner_slot: type[Slot] = Slot
    fabric_type: type[Fabric] = Fabric
    worker_checks_epoch: bool = True
    eager: bool = True  # whether what only adds packets happens at once: to show that it may
    remedy: bool = True  # a restart, where reboots have lost what nobody sends again

    def __post_init__(self) -> None:
        self.slots = self.slots or 2 * self.window
        self.known: list[Packet | Arrival] = []
        self._numbers: dict[Packet | Arrival, int] = {}
        self._cells: list[int] = []  # of each packet's number: the slot that it is for; -1: none
        self._relevant = [0] * len(self.parents) * self.slots
        self._arrivals: dict[Arrival, int] = {}
        self._slot_states: list[SlotState] = []
        self._slot_numbers: dict[SlotState, int] = {}
        self._moved: dict[tuple[int, int, int], tuple[int, tuple[int, ...]]] = {}
        self._events: dict[tuple[int, int, int, int], Events] = {}
        self._cells_of: dict[int, tuple[int, ...]] = {}
        self._sent_masks: dict[tuple[int, int, int], int] = {}
        self._sent: dict[tuple[int, int, int], tuple[int, ...]] = {}
        self._settled: set[tuple[object, ...]] = set()

    # -- the job --

    @cached_property
    def fabric(self) -> Fabric:
        return self.fabric_type(self.parents, self.workers, self.behind)

    @cached_property
    def traffic(self) -> Traffic:
        wraps_soon = 2**serial.SERIAL_BITS - 2 * self.window
        first = wraps_soon if self.first_seq is None else self.first_seq
        return Traffic(self.fabric, self.chunks, self.slots, first)

    @cached_property
    def switches(self) -> dict[tuple[int, int], SwitchModel]:
        """Each switch as it is programmed in each epoch; slot states are put into it."""
        switches = {}
        for epoch in (0, 1):
            for place in self.fabric.switches:
                switch = self.switch_type(FIRST_SLOT + self.slots, self.traffic.value_count)
                switch.install(self.fabric.job(place, FIRST_EPOCH + epoch, self.slots))
                switches[place, epoch] = switch
        return switches

    @property
    def ranks(self) -> range:
        return self.fabric.ranks

    # -- packets, as numbers --

    def number(self, it: Packet | Arrival) -> int:
        if it not in self._numbers:
            self._numbers[it] = len(self.known)
            cell = -1
            if isinstance(it, Packet):
                cell = it.at * self.slots + it.header.slot
                self._relevant[cell] |= 1 << len(self.known)
            else:
                self._arrivals[it] = 1 << len(self.known)
            self.known.append(it)
            self._cells.append(cell)
        return self._numbers[it]

    def sent(self, epoch: int, worker: int, chunk: int) -> tuple[int, ...]:
        """A worker's packet of a chunk, and what else worker 0 sends; () beyond the last chunk."""
        key = (epoch, worker, chunk)
        if chunk >= self.chunks:
            return ()
        if key not in self._sent:
            self._sent[key] = tuple(map(self.number, self.traffic.send(*key)))
        return self._sent[key]

    # -- one packet at one switch --

    def move(self, packet: int, epoch: int, slot: int) -> tuple[int, tuple[int, ...]]:
        """The state of the slot after a packet, and what leaves. Checks what does."""
        key = (packet, epoch, slot)
        if key not in self._moved:
            try:
                self._moved[key] = self._move(*key)
            except Violation as violation:
                raise Violation(f"{violation}, when {self.known[packet]} arrives") from None
        return self._moved[key]

    def _move(self, number: int, epoch: int, before: int) -> tuple[int, tuple[int, ...]]:
        packet = self.known[number]
        assert isinstance(packet, Packet)
        switch = self.switches[packet.at, epoch]
        slot_type = self.inner_slot if packet.at else self.root_slot
        index = FIRST_SLOT + packet.header.slot
        switch.slots.clear()
        switch.slots[index] = slot_type(*self._slot_states[before])
        departures = switch.receive(packet.sender, encode(packet.header, packet.values))
        if switch.slots.keys() != {index}:
            raise Violation(f"{packet} touched the slots {set(switch.slots)}")
        after = self._slot_number(switch.slots[index])
        leaving = tuple(self._leave(packet, epoch, departure) for departure in departures)
        if packet.at == 0 and leaving:
            self._check_way_back(packet, epoch, leaving, is_new=after != before)
        return after, leaving

    def slot_state(self, number: int) -> SlotState:
        """What a slot in the state of this number holds."""
        return self._slot_states[number]

    def _slot_number(self, slot: Slot) -> int:
        owner, *rest = astuple(slot)
        state = (Tag(*owner), *rest)
        if state not in self._slot_numbers:
            self._slot_numbers[state] = len(self._slot_states)
            self._slot_states.append(state)
        return self._slot_numbers[state]

    def _leave(self, packet: Packet, epoch: int, departure: Departure) -> int:
        header = departure.header
        if header.epoch != (FIRST_EPOCH + epoch) % (1 << EPOCH_BITS):
            raise Violation(f"a switch of epoch {epoch} sends on what is of another: {header}")
        taken = self.fabric.carry(packet.at, departure.to)
        if taken is None:
            raise Violation(f"nobody is where {departure} goes")
        at, sender = taken
        if at < WORKER:
            onward = Packet(at, sender, header, departure.values, packet.asker, packet.asked_by)
            return self.number(onward)
        return self.number(self._judge(at - WORKER, epoch, departure, packet))

    def _judge(self, worker: int, epoch: int, departure: Departure, packet: Packet) -> Arrival:
        """Promise 1: it has each worker's part once, and is what the worker may take it for."""
        got, chunk = departure.header, serial.add(departure.header.seq, -self.traffic.first_seq)
        said, values = self.traffic.whole(epoch, chunk)
        if departure.values != values:
            held = [f"{value:#x}" for value in departure.values]
            raise Violation(f"the result of epoch {epoch} chunk {chunk} holds {held}")
        said = replace(said, worker=self.fabric.child(WORKER + worker), path=packet.asked_by)
        if got.flags & Flag.REPLAY and worker != packet.asker:
            raise Violation(f"worker {worker} got what worker {packet.asker} asked for")
        if replace(got, flags=got.flags & ~Flag.REPLAY, level=0) != said:
            raise Violation(f"the result of epoch {epoch} chunk {chunk} says {got}, not {said}")
        return Arrival(worker, epoch, chunk)

    def _check_way_back(
        self, packet: Packet, epoch: int, leaving: tuple[int, ...], is_new: bool
    ) -> None:
        """Promise 2: all switches of one epoch bring a new sum to each worker once; what answers
        a repeat, to the one that asked, or to nobody if the path that it wrote leads there."""
        reached = sorted(self._reached(leaving, epoch))
        is_astray = packet.asked_by in self.traffic.astray
        expected = list(self.ranks) if is_new else [] if is_astray else [packet.asker]
        if reached != expected:
            what = "a new sum" if is_new else f"what worker {packet.asker} asked for"
            raise Violation(f"{what} reaches the workers {reached}, not {expected}")

    def _reached(self, leaving: tuple[int, ...], epoch: int) -> Iterator[int]:
        for number in leaving:
            it = self.known[number]
            if isinstance(it, Arrival):
                yield it.worker
            else:
                yield from self._reached(self.move(number, epoch, self.power_on)[1], epoch)

    # -- the search --

    @cached_property
    def power_on(self) -> int:
        """The state of a slot that nothing has reached."""
        return self._slot_number(Slot(values=(0,) * self.traffic.value_count))

    def start(self) -> State:
        workers = (Worker(0, (0,) * self.window),) * len(self.workers)
        installed = (0,) * len(self.parents)
        slots = (self.power_on,) * len(self.parents) * self.slots
        network = _mask(map(self.number, self.traffic.strangers(1 + self.restart)))
        state = State(workers, installed, slots, network, self.reboots)
        for worker in self.ranks:
            state = self._start_lanes(state, worker)
        return state

    def _start_lanes(self, state: State, worker: int) -> State:
        epoch = state.workers[worker].epoch
        added = 0
        for lane in range(self.window):
            added |= self._sent_mask(epoch, worker, lane)
        return self._close(state, added)

    def _sent_mask(self, epoch: int, worker: int, chunk: int) -> int:
        key = (epoch, worker, chunk)
        if key not in self._sent_masks:
            self._sent_masks[key] = _mask(self.sent(*key))
        return self._sent_masks[key]

    def _close(self, state: State, added: int, *cells: int) -> State:
        """With what is sent besides, and all that this brings about without changing a slot.

        ``cells``: the slots, or entries, that have changed.
        """
        workers, installed, slots, network, reboots = state
        network |= added
        if not self.eager:
            return State(workers, installed, slots, network, reboots)
        pending = {*cells, *self._targets(added)}
        spent = 0
        while pending:
            cell = pending.pop()
            events = self._at(cell, installed, slots, network)
            spent |= events.spent
            new = events.added & ~network
            if new:
                network |= new
                pending.update(self._targets(new))
        return State(workers, installed, slots, network & ~spent, reboots)

    def _targets(self, mask: int) -> tuple[int, ...]:
        if mask not in self._cells_of:
            cells = {self._cells[number] for number in _numbers(mask)}
            self._cells_of[mask] = tuple(cells - {-1})
        return self._cells_of[mask]

    def _at(
        self, cell: int, installed: tuple[int, ...], slots: tuple[int, ...], network: int
    ) -> Events:
        key = (cell, installed[cell // self.slots], slots[cell], network & self._relevant[cell])
        if key not in self._events:
            self._events[key] = self._look(*key[1:])
        return self._events[key]

    def _unchanged(self, state: State) -> Iterator[tuple[object, State]]:
        """Steps of their own, where they are not taken at once."""
        for number in _numbers(state.network):
            cell = self._cells[number]
            if cell >= 0:
                epoch = state.installed[cell // self.slots]
                after, leaving = self.move(number, epoch, state.slots[cell])
                if after == state.slots[cell]:
                    sent = state.network | _mask(leaving)
                    yield Step(self, number), state._replace(network=sent)

    def _look(self, epoch: int, slot: int, packets: int) -> Events:
        added, spent, changes = 0, 0, []
        for number in _numbers(packets):
            after, leaving = self.move(number, epoch, slot)
            sent = _mask(leaving)
            if after != slot:
                changes.append((number, after, sent))
                continue
            added |= sent
            packet = self.known[number]
            assert isinstance(packet, Packet)
            if sent and packet.header.kind is Kind.RESULT and not packet.header.flags & Flag.REPLAY:
                spent |= 1 << number
        return Events(added, spent, tuple(changes))

    def successors(self, state: State) -> Iterator[tuple[object, State]]:
        workers, installed, slots, network, reboots = state
        for cell in range(len(slots)):
            for number, after, sent in self._at(cell, installed, slots, network).changes:
                changed = State(workers, installed, _put(slots, cell, after), network, reboots)
                yield Step(self, number), self._close(changed, sent, cell)
        yield from self._taken(state)
        if not self.eager:
            yield from self._unchanged(state)
        if self.restart:
            yield from self._learnt(state)
        if state.reboots:
            for place in self.fabric.switches:
                zeroed = self._zeroed(state, place)
                if zeroed != state:
                    yield f"switch {place} loses its registers", zeroed

    def _taken(self, state: State) -> Iterator[tuple[object, State]]:
        """A worker takes the result that it waits for, and sends the next chunk of the lane."""
        epochs = (0, 1) if self.restart else (0,)
        for rank, worker in enumerate(state.workers):
            for lane, done in enumerate(worker.done):
                chunk = lane + done * self.window
                for epoch in epochs:
                    arrival = Arrival(rank, epoch, chunk)
                    if not self._arrivals.get(arrival, 0) & state.network:
                        continue
                    if epoch == worker.epoch:
                        moved = worker._replace(done=_put(worker.done, lane, done + 1))
                        after = state._replace(workers=_put(state.workers, rank, moved))
                        sent = self._sent_mask(epoch, rank, chunk + self.window)
                        yield arrival, self._close(after, sent)
                    elif not self.worker_checks_epoch:
                        raise Violation(f"worker {rank} took a result of epoch {epoch}")

    def _learnt(self, state: State) -> Iterator[tuple[object, State]]:
        for place, epoch in enumerate(state.installed):
            if epoch == 0:
                told = state._replace(installed=_put(state.installed, place, 1))
                cells = range(place * self.slots, (place + 1) * self.slots)
                yield f"switch {place} learns of the restart", self._close(told, 0, *cells)
        for rank, worker in enumerate(state.workers):
            if worker.epoch == 0:
                fresh = _put(state.workers, rank, self._fresh)
                after = self._start_lanes(state._replace(workers=fresh), rank)
                yield f"worker {rank} learns of the restart", after

    @property
    def _fresh(self) -> Worker:
        return Worker(1, (0,) * self.window)

    def _zeroed(self, state: State, place: int) -> State:
        first = place * self.slots
        slots = (
            *state.slots[:first],
            *(self.power_on,) * self.slots,
            *state.slots[first + self.slots :],
        )
        if slots == state.slots:
            return state
        after = state._replace(slots=slots, reboots=state.reboots - 1)
        return self._close(after, 0, *range(first, first + self.slots))

    # -- progress --

    def check_progress(self, state: State) -> None:
        """Promise 3: with all that is in flight lost, and nothing from now on, resends end the job.

        A restart that has begun comes to its end first. After reboots one more may be needed.
        """
        if not self.live:
            return
        workers, installed, slots = state.workers, state.installed, state.slots
        if 1 in installed or any(worker.epoch for worker in workers):
            workers, installed = self._all_restarted(workers)
        may_restart = self.remedy and self.reboots > state.reboots
        passed = []
        while not all(map(self._is_done, workers)):
            key = (may_restart, workers, installed, slots)
            if key in self._settled:
                break
            passed.append(key)
            workers, slots = self._resend(workers, installed, slots)
            if (may_restart, workers, installed, slots) == key:
                if not may_restart:
                    done = [worker.done for worker in workers]
                    raise Violation(f"no progress: all resend for ever, done are {done}")
                may_restart = False
                workers, installed = self._all_restarted(workers)
        self._settled.update(passed)

    def _is_done(self, worker: Worker) -> bool:
        return all(
            lane + done * self.window >= self.chunks for lane, done in enumerate(worker.done)
        )

    def _all_restarted(
        self, workers: tuple[Worker, ...]
    ) -> tuple[tuple[Worker, ...], tuple[int, ...]]:
        now = tuple(worker if worker.epoch else self._fresh for worker in workers)
        return now, (1,) * len(self.parents)

    def _resend(
        self, workers: tuple[Worker, ...], installed: tuple[int, ...], slots: tuple[int, ...]
    ) -> tuple[tuple[Worker, ...], tuple[int, ...]]:
        """Each worker sends again, once, what it has no result of; all of it arrives."""
        for rank in self.ranks:
            for lane in range(self.window):
                worker = workers[rank]
                chunk = lane + worker.done[lane] * self.window
                queue = list(self.sent(worker.epoch, rank, chunk)[:1])
                while queue:
                    number = queue.pop(0)
                    it = self.known[number]
                    if isinstance(it, Arrival):
                        workers = self._take(workers, it)
                        continue
                    cell = self._cells[number]
                    after, leaving = self.move(number, installed[it.at], slots[cell])
                    slots = _put(slots, cell, after)
                    queue += leaving
        return workers, slots

    def _take(self, workers: tuple[Worker, ...], it: Arrival) -> tuple[Worker, ...]:
        worker, lane = workers[it.worker], it.chunk % self.window
        done = worker.done[lane]
        if (it.epoch, it.chunk) != (worker.epoch, lane + done * self.window):
            return workers
        moved = worker._replace(done=_put(worker.done, lane, done + 1))
        return _put(workers, it.worker, moved)


def _put(row: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*row[:index], value, *row[index + 1 :])


def _mask(numbers: Iterable[int]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


def _numbers(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
