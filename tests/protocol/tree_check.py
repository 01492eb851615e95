"""An exhaustive search over everything a network can do to one job of a tree of switches.

Each switch is the reference model with the entries of its place, each packet is bytes to it, and
results find their way down by the model's own ``pass_down``. Beyond what any network does

* with ``restart`` the job is admitted anew once: each switch and each worker learns the new epoch
  at a moment of its own;
* with ``reboots`` some switch, so many times, loses its registers at any moment;
* worker 0 sends each packet once more with a path that leads to nobody and with the flag REPLAY;
* strangers send contributions and results in others' names.

Promises: *sums* (each result that reaches a worker is whole, and of its job, epoch, slot and
round), the *way back* (of new sums, and of replays) and *progress*. A result for all that a switch
has passed down is spent: to pass it down again adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ina.protocol import serial
from ina.protocol.slot_model import Slot
from ina.protocol.spec import Flag, Kind
from ina.protocol.switch_model import EPOCH_BITS, Departure, ModelJob, SwitchModel
from tests.protocol.lossy import Loss, Lossy, Sending, State, Told, Turn
from tests.protocol.moves import Arrival, Moved, Moves, frozen, put
from tests.protocol.search import Violation
from tests.protocol.tree_fabric import FIRST_SLOT, WORKER, Fabric
from tests.protocol.tree_traffic import FIRST_EPOCH, Packet, Traffic


class Worker(NamedTuple):
    """How far one is: its epoch, and by lane how many chunks of it have their results."""

    epoch: int
    done: tuple[int, ...]


Workers = tuple[Worker, ...]


@dataclass(frozen=True)
class Tree:
    """The job and its switches. The last fields exist to seed bugs."""

    parents: tuple[int | None, ...]
    workers: tuple[int, ...]
    chunks: int
    window: int = 1
    behind: Mapping[int, int] = field(default_factory=dict)
    restart: bool = False
    reboots: int = 0
    live: bool = True  # whether progress is promised; after reboots, by a restart if it must be
    first_seq: int = 0  # a multiple of the slots; 0: numbers wrap after these
    slots: int = 0  # 0: 2 * window
    switch_type: type[SwitchModel] = SwitchModel
    root_slot: type[Slot] = Slot
    inner_slot: type[Slot] = Slot
    fabric_type: type[Fabric] = Fabric
    worker_checks_epoch: bool = True
    eager: bool = True  # whether what only adds packets happens at once: to show that it may
    remedy: bool = True  # a restart, where reboots have lost what nobody sends again


class TreeMoves(Moves[Packet]):
    """A switch's ``told`` is the epoch that it was told."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.slots = tree.slots or 2 * tree.window
        self.fabric = tree.fabric_type(tree.parents, tree.workers, tree.behind)
        self.traffic = self.make_traffic(tree.first_seq or 2**serial.SERIAL_BITS - 2 * tree.window)
        super().__init__(self.traffic.value_count)
        for switch in self.fabric.switches:
            for _ in range(self.slots):
                self.add_slot(switch)
        self._switches: dict[tuple[int, int], SwitchModel] = {}
        self._sent: dict[tuple[int, int, int], tuple[int, ...]] = {}

    def make_traffic(self, first_seq: int) -> Traffic:
        """What the job's workers send, from this sequence number on."""
        return Traffic(self.fabric, self.tree.chunks, self.slots, first_seq)

    def make_switch(self, job: ModelJob) -> SwitchModel:
        """One that is programmed for the job."""
        switch = self.tree.switch_type(FIRST_SLOT + self.slots, self.traffic.value_count)
        switch.install(job)
        return switch

    def _switch(self, place: int, epoch: int) -> SwitchModel:
        """As it is programmed in an epoch; states of slots are put into it."""
        if (place, epoch) not in self._switches:
            job = self.fabric.job(place, FIRST_EPOCH + epoch, self.slots)
            self._switches[place, epoch] = self.make_switch(job)
        return self._switches[place, epoch]

    def cell(self, packet: Packet) -> int:
        return packet.at * self.slots + packet.header.slot

    def sent(self, epoch: int, worker: int, chunk: int) -> tuple[int, ...]:
        """A worker's packet of a chunk, and what else worker 0 sends; () beyond the last chunk."""
        key = (epoch, worker, chunk)
        if chunk >= self.tree.chunks:
            return ()
        if key not in self._sent:
            self._sent[key] = tuple(map(self.number, self.traffic.send(*key)))
        return self._sent[key]

    def receive(self, number: int, before: int, told: int, old: bool) -> Moved:
        packet = self.packet(number)
        switch = self._switch(packet.at, told)
        slot_type = self.tree.inner_slot if packet.at else self.tree.root_slot
        index = FIRST_SLOT + packet.header.slot
        switch.slots.clear()
        switch.slots[index] = slot_type(*self.slot_states[before])
        departures = switch.receive(packet.sender, self.payload(number))
        if switch.slots.keys() != {index}:
            raise Violation(f"{packet} touched the slots {set(switch.slots)}")
        after = self.slot_states.number(frozen(switch.slots[index]))
        leaving = tuple(self._leave(packet, told, departure) for departure in departures)
        if packet.at == 0 and leaving:
            if after != before:
                self.check_way_back(leaving, told, list(self.fabric.ranks), "a new sum")
            else:  # or nobody, if the path that it wrote leads there
                is_astray = packet.asked_by in self.traffic.astray
                asker = [] if is_astray else [packet.asker]
                self.check_way_back(leaving, told, asker, f"what worker {packet.asker} asked for")
        return after, leaving

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
        chunk = serial.add(header.seq, -self.traffic.first_seq)
        arrival = Arrival(0, at - WORKER, epoch, chunk)
        self.check_result((self.traffic, epoch), arrival, packet, header, departure.values)
        return self.number(arrival)


class TreeSystem(Lossy[Workers, TreeMoves]):
    """The job, its tree and the network."""

    def __init__(self, tree: Tree, moves: TreeMoves | None = None) -> None:
        """``moves``: by default those of mode pool."""
        self.tree = tree
        self.fresh = tuple(Worker(epoch, (0,) * tree.window) for epoch in (0, 1))
        workers = (self.fresh[0],) * len(tree.workers)
        moves = moves or TreeMoves(tree)
        super().__init__(moves, workers, eager=tree.eager, live=tree.live)
        cells = range(len(self.table.relevant))
        self.cells = {
            switch: tuple(cell for cell in cells if self.table.switch_of[cell] == switch)
            for switch in self.table.fabric.switches
        }
        self.losses = tuple(
            Loss(f"switch {switch} loses its registers", of_it, resets=1)
            for switch, of_it in self.cells.items()
        )

    def start(self) -> State:
        strangers = self.table.traffic.strangers(1 + self.tree.restart)
        network = self.table.mask(map(self.table.number, strangers))
        for rank in self.table.fabric.ranks:
            network |= self._begun(0, rank)
        return self.begin((0,) * len(self.tree.parents), network, self.tree.reboots)

    def _begun(self, epoch: int, rank: int) -> int:
        """What a worker sends first."""
        lanes = range(self.tree.window)
        return self.table.mask(n for lane in lanes for n in self.table.sent(epoch, rank, lane))

    def is_spent(self, number: int, sent: int) -> bool:
        header = self.table.packet(number).header
        return bool(sent) and header.kind is Kind.RESULT and not header.flags & Flag.REPLAY

    def turns(self, far: Workers, told: Told) -> Iterator[Turn]:
        now = self.far.number(far)
        for rank, worker in enumerate(far):
            for lane, done in enumerate(worker.done):
                chunk = lane + done * self.tree.window
                for epoch in range((chunk < self.tree.chunks) * (1 + self.tree.restart)):
                    arrival = Arrival(0, rank, epoch, chunk)
                    needs = self.table.mask([self.table.number(arrival)])
                    if epoch == worker.epoch:
                        after = self.far.number(self.take(far, arrival)[0])
                        sent = self.table.mask(
                            self.table.sent(epoch, rank, chunk + self.tree.window)
                        )
                        yield Turn(arrival, after, told, sent, needs=needs)
                    elif not self.tree.worker_checks_epoch:
                        broken = f"worker {rank} took a result of epoch {epoch}"
                        yield Turn(arrival, now, told, 0, needs=needs, broken=broken)
        if self.tree.restart:
            for switch, epoch in enumerate(told):
                if epoch == 0:
                    what = f"switch {switch} learns of the restart"
                    yield Turn(what, now, put(told, switch, 1), 0, self.cells[switch])
            for rank, worker in enumerate(far):
                if worker.epoch == 0:
                    after = self.far.number(put(far, rank, self.fresh[1]))
                    what = f"worker {rank} learns of the restart"
                    yield Turn(what, after, told, self._begun(1, rank))

    # -- progress --

    def open(self, far: Workers) -> Iterator[Sending | None]:
        for rank, worker in enumerate(far):
            for lane, done in enumerate(worker.done):
                sent = self.table.sent(worker.epoch, rank, lane + done * self.tree.window)
                yield Sending(sent[0], sent[0], None) if sent else None

    def take(self, far: Workers, it: Arrival) -> tuple[Workers, object]:
        worker, lane = far[it.worker], it.chunk % self.tree.window
        done = worker.done[lane]
        if (it.mapping, it.chunk) != (worker.epoch, lane + done * self.tree.window):
            return far, None
        return put(far, it.worker, worker._replace(done=put(worker.done, lane, done + 1))), None

    def ended(self, far: Workers, told: Told) -> tuple[Workers, Told]:
        if 1 not in told and not any(worker.epoch for worker in far):
            return far, told
        now = tuple(worker if worker.epoch else self.fresh[1] for worker in far)
        return now, (1,) * len(told)

    def may_restart(self, state: State) -> bool:
        return self.tree.remedy and self.tree.reboots > state.resets
