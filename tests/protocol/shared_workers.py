"""What workers of jobs that share slots wait for, send because of it, and take."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from tests.protocol.shared_moves import Moves
from tests.protocol.shared_tenants import Arrival, Mapping, Owned

T = TypeVar("T")


class Worker(NamedTuple):
    """How far one is: by mapping of its job, and by lane, how many chunks have their results."""

    moved: bool  # to the second mapping
    done: tuple[tuple[int, ...], ...]


Ranks = tuple[Worker, ...]


class Workers:
    """Of all jobs."""

    def __init__(self, moves: Moves) -> None:
        self.moves, self.tenants = moves, moves.tenants
        self._sent: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        self._useless: dict[tuple[Ranks, ...], tuple[int, int]] = {}

    def start(self) -> tuple[Ranks, ...]:
        """By job."""
        return tuple(
            tuple(
                Worker(False, tuple((0,) * it.arc.window for it in mappings))
                for _ in mappings[0].fabric.ranks
            )
            for mappings in self.tenants.of
        )

    def send(self, mapping: Mapping, rank: int, chunk: int) -> tuple[int, int, int]:
        """The numbers of the packet as it is sent first and again, and the mask of both and of what
        these bring about by themselves."""
        key = (mapping.index, rank, chunk)
        if key not in self._sent:
            first, again = map(self.moves.number, mapping.send(rank, chunk))
            mask = self.moves.masks[first] | self.moves.masks[again]
            self._sent[key] = first, again, mask | (0 if self.moves.exact else self._alone(again))
        return self._sent[key]

    def _alone(self, number: int) -> int:
        """What a resend brings about where each slot on its way is somebody else's."""
        it, mask = self.moves.known[number], 0
        assert isinstance(it, Owned)
        if self.moves.mapping(number).fabric.is_shared(it.at):
            told = self.tenants.told_of(self.moves.mapping(number))
            for onward in self.moves.move(number, self.moves.power_on, told)[1]:
                mask |= self.moves.masks[onward] | self._alone(onward)
        return mask

    def chunks(self, mapping: Mapping, rank: int, worker: Worker) -> range:
        """Those that a worker sends by a mapping."""
        tenant, all_of_it = self.tenants.jobs[mapping.job], mapping.traffic.chunks
        if tenant.change != "resize":
            return range(all_of_it if mapping.number == worker.moved else 0)
        if mapping.number:
            return range(all_of_it if worker.moved else 0)
        # Rank 0 sends none of these by the first mapping; others do until they hear of it.
        return range(tenant.moves_at if worker.moved or rank == 0 else all_of_it)

    @staticmethod
    def next(mapping: Mapping, worker: Worker, lane: int) -> int:
        """The chunk of a lane that a worker waits for."""
        return lane + worker.done[mapping.number][lane] * mapping.arc.window

    def begun(self, rank: int, worker: Worker, mapping: Mapping) -> int:
        mask = 0
        for lane in mapping.lanes:
            chunk = self.next(mapping, worker, lane)
            if chunk in self.chunks(mapping, rank, worker):
                mask |= self.send(mapping, rank, chunk)[2]
        return mask

    def take(self, workers: tuple[Ranks, ...], it: Arrival) -> tuple[Ranks, ...]:
        ranks = workers[it.job]
        worker, mapping = ranks[it.worker], self.tenants.of[it.job][it.mapping]
        lane = it.chunk % mapping.arc.window
        if it.chunk != self.next(mapping, worker, lane):
            return workers
        if it.chunk not in self.chunks(mapping, it.worker, worker):
            return workers
        lanes = worker.done[it.mapping]
        done = put(worker.done, it.mapping, put(lanes, lane, lanes[lane] + 1))
        return put(workers, it.job, put(ranks, it.worker, worker._replace(done=done)))

    def are_done(self, workers: tuple[Ranks, ...]) -> bool:
        return not any(
            self.next(mapping, worker, lane) in self.chunks(mapping, rank, worker)
            for mapping in self.tenants.mappings
            for rank, worker in enumerate(workers[mapping.job])
            for lane in mapping.lanes
        )

    def of_no_use(self, workers: tuple[Ranks, ...]) -> int:
        """Arrivals that nobody waits for any more."""
        known = len(self.moves.arrivals)
        if self._useless.get(workers, (-1, 0))[0] != known:
            mask = 0
            for arrival, bit in self.moves.arrivals.items():
                worker = workers[arrival.job][arrival.worker]
                mapping = self.tenants.of[arrival.job][arrival.mapping]
                lane = arrival.chunk % mapping.arc.window
                left = self.tenants.jobs[arrival.job].change == "restart" and worker.moved
                if arrival.chunk < self.next(mapping, worker, lane) or (
                    left and arrival.mapping == 0
                ):
                    mask |= bit
            self._useless[workers] = known, mask
        return self._useless[workers][1]


def put(row: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    """The row with another value at an index."""
    return (*row[:index], value, *row[index + 1 :])
