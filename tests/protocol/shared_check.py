"""An exhaustive search over everything a network can do to jobs that share slots (mode `shared`).

As in ``tree_check`` each switch is the reference model with the entries of its place, each packet
is bytes to it, and results find their way down by the model's own ``pass_down``. Here the switches
below a job's root, its aggregator, lend their slots to several jobs. At any moment

* a worker's packet arrives as it was sent first, or as it is sent again;
* the owner of a slot has been silent for AGE, or has not (:mod:`shared_moves`);
* with ``reboots`` a switch with shared slots loses its registers, any number of times;
* with ``resets`` a switch with slots of a job's own loses them, so many times;
* a job that starts again, or whose mapping changes while it runs, has each switch and each worker
  learn of it at a moment of its own.

Promises: every *sum* that leaves a switch, and every result, holds what it says; results find the
*way back*; a slot is never *pinned*; and from every state, all in flight lost, *resends* end all
jobs, whether slots age meanwhile or not.

Beside what ``lossy`` does to keep the states few: whatever has been sent may reach the
aggregator by itself at once, as a resend that passes a slot of others; and of sums of the same
parts, as different packets would have brought them about, all are there if one is. So more may
happen than can, and never less. Sums that the aggregator has in, or past it, are forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from ina.protocol.spec import Kind
from tests.protocol.lossy import Loss, Lossy, Run, Sending, State, Told, Turn
from tests.protocol.moves import Arrival, put
from tests.protocol.shared_moves import Kinds, SharedMoves
from tests.protocol.shared_tenants import Mapping, Tenant, Tenants
from tests.protocol.shared_workers import Far, Ranks, Workers


@dataclass(frozen=True)
class Shared:
    """The jobs, and what may happen to them. The last fields exist to seed bugs."""

    jobs: tuple[Tenant, ...]
    reboots: bool = False
    resets: int = 0
    live: bool = True  # whether progress is promised: not where a job's own slots are lost
    exact: bool = False  # nothing happens that cannot: to show that leaving it out loses nothing
    strangers: bool = False
    marks: bool = True  # see SharedMoves; False: to see what else finds a fault
    versions: int = 2
    kinds: Kinds = field(default_factory=Kinds)


class SharedSystem(Lossy[Far, SharedMoves]):
    """The jobs, their switches and the network."""

    ages = (False, True)

    def __init__(self, of: Shared) -> None:
        self.jobs, self.resets, self.strangers = of.jobs, of.resets, of.strangers
        self.tenants = Tenants(of.jobs, of.versions)
        table = SharedMoves(self.tenants, of.kinds, of.exact, of.marks)
        self.workers = Workers(table)
        self._useless: dict[int, tuple[int, int]] = {}
        super().__init__(table, self.workers.start(), eager=not of.exact, live=of.live)
        self.switches = range(max(len(it.fabric.parents) for it in self.tenants.mappings))
        owners = [it.index for it in self.tenants.mappings]
        shared = [self._loss(at, -1, 0) for at in self.switches if at and of.reboots]
        own = [self._loss(at, owner, 1) for at in self.switches for owner in owners if of.resets]
        self.losses = (*shared, *own)

    def _loss(self, switch: int, owner: int, resets: int) -> Loss:
        """A switch loses the registers of its shared slots, or of some of a job's own."""
        cells = tuple(
            cell
            for cell, place in enumerate(self.table.places)
            if (place.switch, place.owner) == (switch, owner) and place.slot >= 0
        )
        return Loss(f"switch {switch} loses slots of {owner}", cells, resets)

    def start(self) -> State:
        far, network = self.far[0], 0
        for mapping in self.tenants.mappings:
            for rank in mapping.fabric.ranks:
                network |= self.workers.begun(rank, mapping, far)
            if self.strangers:
                for packet in mapping.strangers():
                    network |= 1 << self.table.number(packet)
        told = reduce(or_, (mappings[0].told for mappings in self.tenants.of))
        return self.begin((told,) * len(self.switches), network, self.resets)

    def is_spent(self, number: int, sent: int) -> bool:
        it = self.table.packet(number)
        if it.header.kind is Kind.RESULT:
            return True  # it has been passed down
        if it.at or self.resets:
            return False
        # The aggregator has its parts, or is past it. Who wants a replay sends its part again.
        bits = self.table.bits(it)
        return bits & (bits - 1) != 0

    def useless(self, workers: int) -> int:
        known, mask = self._useless.get(workers, (0, 0))
        arrivals = self.table.arrivals
        if known != len(arrivals):
            far = self.far[workers]
            for number in arrivals[known:]:
                it = self.table.known[number]
                assert isinstance(it, Arrival)
                if self.workers.is_useless(far, it):
                    mask |= 1 << number
            self._useless[workers] = len(arrivals), mask
        return mask

    def turns(self, far: Far, told: Told) -> Iterator[Turn]:
        for it in self.workers.waits(far):
            arrival = Arrival(it.mapping.job, it.rank, it.mapping.number, it.chunk)
            needs = 1 << self.table.number(arrival)
            broken = f"a result that worker {it.rank} cannot take: {arrival}"
            after = self.take(far, arrival)[0]
            sent = self.workers.begun(it.rank, it.mapping, after) if it.is_sent else 0
            then = self.far.number(after)
            yield Turn(arrival, then, told, sent, (), needs, "" if it.is_sent else broken)
        for job, tenant in enumerate(self.jobs):
            if tenant.change:
                yield from self._learnt(job, far, told)

    def _learnt(self, job: int, far: Far, told: Told) -> Iterator[Turn]:
        """A switch or a worker hears of the second mapping, or a switch that the first is over."""
        is_restart = self.jobs[job].change == "restart"
        first, second = self.tenants.of[job]
        both, ranks = first.told | second.told, far[job]
        over = second.told if self._is_over(first, ranks) else 0
        later = {first.told: second.told if is_restart else both, both: over}
        for switch in first.fabric.switches:
            if then := later.get(told[switch] & both, 0):
                cells = [
                    cell for cell, place in enumerate(self.table.places) if place.switch == switch
                ]
                what = f"switch {switch} admits {then:#b}, of job {job}"
                after = put(told, switch, told[switch] & ~both | then)
                yield Turn(what, self.far.number(far), after, 0, tuple(cells))
        for rank, worker in enumerate(ranks):
            # Of a resize rank 0 says from where on, and the others hear of it from then on.
            if not worker.moved and (is_restart or rank == 0 or ranks[0].moved):
                moved = put(far, job, put(ranks, rank, worker._replace(moved=True)))
                sent = self.workers.begun(rank, second, moved)
                what = f"worker {rank} of job {job} goes over to the second mapping"
                yield Turn(what, self.far.number(moved), told, sent)

    def _is_over(self, first: Mapping, ranks: Ranks) -> bool:
        """Whether all have all results of a resize's first mapping."""
        return all(
            worker.moved and self.workers.next(first, worker, lane) >= self.jobs[first.job].moves_at
            for worker in ranks
            for lane in first.lanes
        )

    # -- progress --

    def open(self, far: Far) -> Iterator[Sending | None]:
        return self.workers.open(far)

    def take(self, far: Far, it: Arrival) -> tuple[Far, object]:
        return self.workers.take(far, it)

    def ended(self, far: Far, told: Told) -> tuple[Far, Told]:
        for job, tenant in enumerate(self.jobs):
            if not tenant.change:
                continue
            # Rank 0 waits where it has said that the second mapping begins.
            first, second = (it.told for it in self.tenants.of[job])
            is_resize = tenant.change == "resize"
            has_begun = any(worker.moved for worker in far[job])
            if is_resize or has_begun or any(now & (first | second) != first for now in told):
                far = put(far, job, tuple(worker._replace(moved=True) for worker in far[job]))
                goes = 0 if is_resize else first
                told = tuple(now & ~goes | second for now in told)
        return far, told

    def undisturbed(self) -> Counter[int]:
        """How many packets of each chunk come to the aggregator where none is lost or late."""
        start = self.start()
        unsent = frozenset(sending.chunk for sending in self.open(self.far[0]) if sending)
        self.run(Run(start.workers, start.told, start.slots, unsent, True, False))
        chunks: Counter[int] = Counter()
        for number, times in self.delivered.items():
            it = self.table.packet(number)
            if it.at == 0:
                chunks[self.table.mapping(number).chunk(it.header.seq)] += times
        return chunks
