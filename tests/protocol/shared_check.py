"""An exhaustive search over everything a network can do to jobs that share slots (mode `shared`).

As in ``tree_check`` each switch is the reference model with the entries of its place, each packet
is bytes to it, results find their way down by the model's own ``pass_down``, and the network is a
set that packets enter when they are sent and never leave. Here the switches below a job's root, its
aggregator, lend their slots to several jobs. At any moment

* a worker's packet arrives as it was sent first, or as it is sent again;
* the owner of a slot has been silent for AGE, or has not (:mod:`shared_moves`);
* with ``reboots`` a switch with shared slots loses its registers, any number of times;
* with ``resets`` a switch with slots of a job's own loses them, so many times;
* a job that starts again, or whose mapping changes while it runs, has each switch and each worker
  learn of it at a moment of its own.

Promises: every *sum* that leaves a switch, and every result, holds what it says; results find the
*way back*; a slot is never *pinned*; and from every state, all in flight lost, *resends* end all
jobs, whether slots age meanwhile or not.

Beside what ``tree_check`` does to keep the states few: whatever has been sent may reach the
aggregator by itself at once, as a resend that passes a slot of others; and of sums of the same
parts, as different packets would have brought them about, all are there if one is. So more may
happen than can, and never less. Sums that the aggregator has in, or past it, are forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ina.protocol.spec import Kind
from tests.protocol.model_check import Violation
from tests.protocol.shared_moves import Kinds, Moves
from tests.protocol.shared_tenants import Arrival, Mapping, Owned, Tenant, Tenants
from tests.protocol.shared_workers import Ranks, Workers, put


class State(NamedTuple):
    """Everything that may differ between two moments."""

    workers: tuple[Ranks, ...]  # by job
    admitted: tuple[tuple[int, ...], ...]  # by switch and job: a bit for each of its mappings
    slots: tuple[int, ...]  # the number of each one's state, by its place
    network: int  # a bit for each packet or arrival
    resets: int  # that may still happen


class Events(NamedTuple):
    """What the packets for one slot may do to it."""

    added: int  # to the network, by those that leave the slot as it is
    spent: int
    changes: tuple[tuple[int, bool, int, int], ...]  # packet, old, the slot after it, what it adds


class Step(NamedTuple):
    """A packet arrives; a sentence only when it is printed."""

    moves: Moves
    number: int
    old: bool

    def __str__(self) -> str:
        return f"{self.moves.known[self.number]} arrives" + (" at an old slot" if self.old else "")


class Run(NamedTuple):
    """Where resends have brought the jobs, in :meth:`SharedSystem.check_progress`."""

    workers: tuple[Ranks, ...]
    slots: tuple[int, ...]
    unsent: frozenset[tuple[int, int, int]]  # mapping, rank, chunk: is sent for the first time


@dataclass
class SharedSystem:
    """The jobs, their switches and the network. The last fields exist to seed bugs."""

    jobs: tuple[Tenant, ...]
    reboots: bool = False
    resets: int = 0
    live: bool = True  # whether progress is promised: not where a job's own slots are lost
    exact: bool = False  # nothing happens that cannot: to show that leaving it out loses nothing
    strangers: bool = False
    marks: bool = True  # see Moves; False: to see what else finds a fault
    versions: int = 2
    kinds: Kinds = field(default_factory=Kinds)

    def __post_init__(self) -> None:
        self.tenants = Tenants(self.jobs, self.versions)
        self.moves = Moves(self.tenants, self.kinds, self.exact, self.marks)
        self.workers = Workers(self.moves)
        self._events: dict[object, Events] = {}
        self._cells_of: dict[int, tuple[int, ...]] = {}
        self._settled: set[object] = set()
        self._gone_up: Counter[int] = Counter()

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        return self.tenants.mappings

    # -- states --

    def start(self) -> State:
        workers = self.workers.start()
        switches = max(len(it.fabric.parents) for it in self.mappings)
        admitted = ((1,) * len(self.jobs),) * switches
        network = 0
        for mapping in self.mappings:
            for rank, worker in enumerate(workers[mapping.job]):
                network |= self.workers.begun(rank, worker, mapping)
            if self.strangers:
                network |= _mask(map(self.moves.number, mapping.strangers()))
        slots = (self.moves.power_on,) * len(self.moves.places)
        state = State(workers, admitted, slots, 0, self.resets)
        return self._close(state, network, *range(len(slots)))

    def _close(self, state: State, added: int, *cells: int) -> State:
        """With what is sent besides, and all that this brings about without changing a slot."""
        workers, admitted, slots, network, resets = state
        network |= added
        if not self.exact:
            pending = {*cells, *self._targets(added)}
            spent = 0
            while pending:
                events = self._at(pending.pop(), admitted, slots, network)
                spent |= events.spent
                new = events.added & ~network
                if new:
                    network |= new
                    pending.update(self._targets(new))
            network &= ~spent
        return State(workers, admitted, slots, network & ~self.workers.of_no_use(workers), resets)

    def _targets(self, mask: int) -> tuple[int, ...]:
        if mask not in self._cells_of:
            cells = {self.moves.cells[number] for number in _numbers(mask)}
            self._cells_of[mask] = tuple(cells - {-1})
        return self._cells_of[mask]

    def _at(
        self,
        cell: int,
        admitted: tuple[tuple[int, ...], ...],
        slots: tuple[int, ...],
        network: int,
    ) -> Events:
        now = admitted[self.moves.places[cell].switch]
        key = (cell, now, slots[cell], network & self.moves.relevant[cell])
        if key not in self._events:
            self._events[key] = self._look(now, slots[cell], key[3])
        return self._events[key]

    def _ways(self, number: int, now: tuple[int, ...], slot: int) -> tuple[bool, ...]:
        """Whether the slot is old, for each way in which the packet may find it; (): none, the
        switch does not admit it."""
        mapping = self.moves.mapping(number)
        if not now[mapping.job] >> mapping.number & 1:
            self.moves.move(number, slot, now)  # which sees to it that nothing happens
            return ()
        return (False, True) if self.moves.may_find_old(number, slot) else (False,)

    def _look(self, now: tuple[int, ...], slot: int, packets: int) -> Events:
        added, spent, changes = 0, 0, []
        for number in _numbers(packets):
            ways = self._ways(number, now, slot)
            for old in ways:
                after, leaving = self.moves.move(number, slot, now, old)
                sent = 0
                for it in leaving:
                    sent |= self.moves.masks[it]
                if after != slot:
                    changes.append((number, old, after, sent))
                else:
                    added |= sent
                    if self._is_spent(number):
                        spent |= 1 << number
        return Events(added, spent, tuple(changes))

    def _is_spent(self, number: int) -> bool:
        """Whether a packet that has left its slot as it was will never do anything else."""
        it = self.moves.known[number]
        assert isinstance(it, Owned)
        if it.header.kind is Kind.RESULT:
            return True  # it has been passed down
        if it.at or self.resets:
            return False
        # The aggregator has its parts, or is past it. Who wants a replay sends its part again.
        bits = self.moves.bits(it)
        return bits & (bits - 1) != 0

    def successors(self, state: State) -> Iterator[tuple[object, State]]:
        workers, admitted, slots, network, resets = state
        for cell in range(len(slots)):
            for number, old, after, sent in self._at(cell, admitted, slots, network).changes:
                changed = State(workers, admitted, put(slots, cell, after), network, resets)
                yield Step(self.moves, number, old), self._close(changed, sent, cell)
        if self.exact:
            yield from self._unchanged(state)
        yield from self._taken(state)
        for job, tenant in enumerate(self.jobs):
            if tenant.change:
                yield from self._learnt(state, job)
        for switch in range(1, len(admitted)):
            if self.reboots:
                yield from self._zeroed(state, switch, -1)
        if resets:
            for switch in range(len(admitted)):
                for mapping in self.mappings:
                    yield from self._zeroed(state, switch, mapping.index)

    def _unchanged(self, state: State) -> Iterator[tuple[object, State]]:
        """Steps of their own, where they are not taken at once."""
        for number in _numbers(state.network):
            cell = self.moves.cells[number]
            if cell >= 0:
                slot = state.slots[cell]
                now = state.admitted[self.moves.places[cell].switch]
                for old in self._ways(number, now, slot):
                    after, leaving = self.moves.move(number, slot, now, old)
                    if after == slot and leaving:
                        sent = self._close(state, _mask(leaving))
                        yield Step(self.moves, number, old), sent

    def _taken(self, state: State) -> Iterator[tuple[object, State]]:
        """A worker takes the result that it waits for, and sends the next chunk of the lane."""
        for mapping in self.mappings:
            for rank, worker in enumerate(state.workers[mapping.job]):
                for lane in mapping.lanes:
                    chunk = self.workers.next(mapping, worker, lane)
                    arrival = Arrival(mapping.job, rank, mapping.number, chunk)
                    if not self.moves.arrivals.get(arrival, 0) & state.network:
                        continue
                    if chunk not in self.workers.chunks(mapping, rank, worker):
                        raise Violation(f"a result that worker {rank} cannot take: {arrival}")
                    workers = self.workers.take(state.workers, arrival)
                    moved = workers[mapping.job][rank]
                    sent = self.workers.begun(rank, moved, mapping)
                    yield arrival, self._close(state._replace(workers=workers), sent)

    def _learnt(self, state: State, job: int) -> Iterator[tuple[object, State]]:
        """A switch or a worker hears of the second mapping, or a switch that the first is over."""
        is_restart = self.jobs[job].change == "restart"
        first, second = self.tenants.of[job]
        ranks = state.workers[job]
        for switch in first.fabric.switches:
            now = state.admitted[switch]
            later = {1: 2 if is_restart else 3, 3: 2 if self._is_over(first, ranks) else 0}
            if then := later.get(now[job], 0):
                admitted = put(state.admitted, switch, put(now, job, then))
                cells = [
                    cell for cell, place in enumerate(self.moves.places) if place.switch == switch
                ]
                after = self._close(state._replace(admitted=admitted), 0, *cells)
                yield f"switch {switch} admits {then:#b} of job {job}", after
        for rank, worker in enumerate(ranks):
            # Of a resize rank 0 says from where on, and the others hear of it from then on.
            if not worker.moved and (is_restart or rank == 0 or ranks[0].moved):
                moved = worker._replace(moved=True)
                workers = put(state.workers, job, put(ranks, rank, moved))
                sent = self.workers.begun(rank, moved, second)
                after = self._close(state._replace(workers=workers), sent)
                yield f"worker {rank} of job {job} goes over to the second mapping", after

    def _is_over(self, first: Mapping, ranks: Ranks) -> bool:
        """Whether all have all results of a resize's first mapping."""
        return all(
            worker.moved and self.workers.next(first, worker, lane) >= self.jobs[first.job].moves_at
            for worker in ranks
            for lane in first.lanes
        )

    def _zeroed(self, state: State, switch: int, owner: int) -> Iterator[tuple[object, State]]:
        """A switch loses the registers of its shared slots, or of some of a job's own."""
        slots, cells = list(state.slots), []
        for cell, place in enumerate(self.moves.places):
            if (place.switch, place.owner) == (switch, owner) and place.slot >= 0:
                slots[cell] = self.moves.power_on
                cells.append(cell)
        if tuple(slots) != state.slots:
            resets = state.resets - (owner >= 0)
            after = state._replace(slots=tuple(slots), resets=resets)
            yield f"switch {switch} loses slots of {owner}", self._close(after, 0, *cells)

    # -- progress --

    def check_progress(self, state: State) -> None:
        """With all that is in flight lost, and nothing from now on, resends end all jobs.

        Changes that have begun come to their end first. Slots never age meanwhile, or always have.
        """
        if not self.live:
            return
        workers, admitted = state.workers, state.admitted
        for job, tenant in enumerate(self.jobs):
            if not tenant.change:
                continue
            # Rank 0 waits where it has said that the second mapping begins.
            is_resize = tenant.change == "resize"
            begun = any(worker.moved for worker in workers[job])
            if is_resize or begun or any(now[job] != 1 for now in admitted):
                ranks = tuple(worker._replace(moved=True) for worker in workers[job])
                workers = put(workers, job, ranks)
                admitted = tuple(
                    put(now, job, now[job] | 2 if is_resize else 2) for now in admitted
                )
        for old in (False, True):
            self._run_out(Run(workers, state.slots, frozenset()), admitted, old)

    def _run_out(self, run: Run, admitted: tuple[tuple[int, ...], ...], old: bool) -> None:
        passed: dict[object, None] = {}
        while not self.workers.are_done(run.workers):
            key = (run, admitted, old)
            if key in self._settled:
                break
            if key in passed:
                done = [[worker.done for worker in ranks] for ranks in run.workers]
                raise Violation(f"no progress: all resend for ever, done are {done}")
            passed[key] = None
            run = self._resend(run, admitted, old)
        self._settled.update(passed)

    def _resend(self, run: Run, admitted: tuple[tuple[int, ...], ...], old: bool) -> Run:
        """Each worker sends once what it has no result of: what it has just begun for the first
        time, the rest again. All of it arrives."""
        for mapping in self.mappings:
            for rank in mapping.fabric.ranks:
                for lane in mapping.lanes:
                    worker = run.workers[mapping.job][rank]
                    chunk = self.workers.next(mapping, worker, lane)
                    if chunk not in self.workers.chunks(mapping, rank, worker):
                        continue
                    first, again, _ = self.workers.send(mapping, rank, chunk)
                    begins = (mapping.index, rank, chunk)
                    number = first if begins in run.unsent else again
                    run = run._replace(unsent=run.unsent - {begins})
                    run = self._deliver(run, number, admitted, old)
        return run

    def _deliver(
        self, run: Run, number: int, admitted: tuple[tuple[int, ...], ...], old: bool
    ) -> Run:
        """A packet arrives, and all that this brings about."""
        workers, slots, unsent = run
        queue = [number]
        while queue:
            number = queue.pop(0)
            it = self.moves.known[number]
            if isinstance(it, Arrival):
                after = self.workers.take(workers, it)
                if after != workers:
                    mapping = self.tenants.of[it.job][it.mapping]
                    unsent |= {(mapping.index, it.worker, it.chunk + mapping.arc.window)}
                workers = after
                continue
            if it.at == 0:
                self._gone_up[self.mappings[it.mapping].chunk(it.header.seq)] += 1
            cell = self.moves.cells[number]
            now = admitted[it.at]
            if ways := self._ways(number, now, slots[cell]):
                way = old and len(ways) == 2
                changed, leaving = self.moves.move(number, slots[cell], now, way)
                slots = put(slots, cell, changed)
                queue += leaving
        return Run(workers, slots, unsent)

    # -- of the search itself, and of what it does not look at --

    def reachable(self) -> set[object]:
        """All states but for what is in flight; slots are told by what they hold."""
        start = self.start()
        known, queue = {start}, [start]
        while queue:
            for _, after in self.successors(queue.pop()):
                if after not in known:
                    known.add(after)
                    queue.append(after)
        return {
            (it.workers, it.admitted, tuple(map(self.moves.slot_state, it.slots)), it.resets)
            for it in known
        }

    def undisturbed(self) -> Counter[int]:
        """How many packets of each chunk come to the aggregator where none is lost or late."""
        start = self.start()
        unsent = frozenset(
            (mapping.index, rank, lane)
            for mapping in self.mappings
            for rank in mapping.fabric.ranks
            for lane in mapping.lanes
        )
        self._gone_up.clear()
        self._run_out(Run(start.workers, start.slots, unsent), start.admitted, old=True)
        return self._gone_up


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
