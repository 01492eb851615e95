"""What workers of jobs that share slots wait for, send because of it, and take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol.lossy import Sending
from tests.protocol.moves import Arrival, put
from tests.protocol.shared_moves import SharedMoves
from tests.protocol.shared_tenants import Mapping


class Worker(NamedTuple):
    """How far one is: by mapping of its job, and by lane, how many chunks have their results."""

    moved: bool  # to the second mapping
    done: tuple[tuple[int, ...], ...]


Ranks = tuple[Worker, ...]

Far = tuple[Ranks, ...]
"""By job: how far all are."""


class Waits(NamedTuple):
    """A worker waits for the result of a chunk, of one of its lanes by one of its mappings."""

    mapping: Mapping
    rank: int
    lane: int
    chunk: int
    is_sent: bool  # or there is no such chunk, for this worker


class Workers:
    """Of all jobs."""

    def __init__(self, moves: SharedMoves) -> None:
        self.moves, self.tenants = moves, moves.tenants
        self._sent: dict[tuple[int, int, int], tuple[Sending, int]] = {}

    def start(self) -> Far:
        return tuple(
            tuple(
                Worker(False, tuple((0,) * it.arc.window for it in mappings))
                for _ in mappings[0].fabric.ranks
            )
            for mappings in self.tenants.of
        )

    def _send(self, mapping: Mapping, rank: int, chunk: int) -> tuple[Sending, int]:
        """And the mask of it, sent first and again, and of what this brings about by itself."""
        key = (mapping.index, rank, chunk)
        if key not in self._sent:
            first, again = map(self.moves.number, mapping.send(rank, chunk))
            mask = self.moves.mask((first, again))
            mask |= 0 if self.moves.exact else self._alone(again)
            self._sent[key] = Sending(first, again, key), mask
        return self._sent[key]

    def _alone(self, number: int) -> int:
        """What a resend brings about where each slot on its way is somebody else's."""
        mapping, mask = self.moves.mapping(number), 0
        if mapping.fabric.is_shared(self.moves.packet(number).at):
            told = self.tenants.told_of(mapping)
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

    def waits(self, far: Far) -> Iterator[Waits]:
        """By mapping, rank and lane."""
        for mapping in self.tenants.mappings:
            for rank, worker in enumerate(far[mapping.job]):
                sent = self.chunks(mapping, rank, worker)
                for lane in mapping.lanes:
                    chunk = self.next(mapping, worker, lane)
                    yield Waits(mapping, rank, lane, chunk, chunk in sent)

    def begun(self, rank: int, mapping: Mapping, far: Far) -> int:
        mask = 0
        worker = far[mapping.job][rank]
        sent = self.chunks(mapping, rank, worker)
        for lane in mapping.lanes:
            chunk = self.next(mapping, worker, lane)
            if chunk in sent:
                mask |= self._send(mapping, rank, chunk)[1]
        return mask

    def open(self, far: Far) -> Iterator[Sending | None]:
        for it in self.waits(far):
            yield self._send(it.mapping, it.rank, it.chunk)[0] if it.is_sent else None

    def take(self, far: Far, it: Arrival) -> tuple[Far, object]:
        ranks = far[it.job]
        worker, mapping = ranks[it.worker], self.tenants.of[it.job][it.mapping]
        lane = it.chunk % mapping.arc.window
        if it.chunk != self.next(mapping, worker, lane):
            return far, None
        if it.chunk not in self.chunks(mapping, it.worker, worker):
            return far, None
        lanes = worker.done[it.mapping]
        done = put(worker.done, it.mapping, put(lanes, lane, lanes[lane] + 1))
        after = put(far, it.job, put(ranks, it.worker, worker._replace(done=done)))
        return after, (mapping.index, it.worker, it.chunk + mapping.arc.window)

    def is_useless(self, far: Far, it: Arrival) -> bool:
        """Whether nobody waits for a result any more."""
        worker, mapping = far[it.job][it.worker], self.tenants.of[it.job][it.mapping]
        has_left = self.tenants.jobs[it.job].change == "restart" and worker.moved
        lane = it.chunk % mapping.arc.window
        return it.chunk < self.next(mapping, worker, lane) or (has_left and it.mapping == 0)
