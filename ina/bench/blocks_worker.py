"""Worker of ``ina bench blocks``, one process a rank; without torch. Rank 0 prints JSON lines.

Sparse and dense sums of the same arrays take turns. Place and controller come from the environment,
as ``ina emulate run`` sets it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ina.bench.blocks import SAME, BlocksOrder
from ina.bench.testbed import asked_of
from ina.host import Session, WorkerOptions
from ina.host.arrays import VALUE_TYPES, Array
from ina.host.sparse import kernels
from ina.host.sparse.agreement import counter_bits

_JOB = "bench-blocks"
_TIMEOUT_S = 120.0  # of the join, and of each sum
_WARM_UP = 2
_LEAST_SAMPLES = 3
_CYCLE = 5
"""Values repeat, so that small integers whose sum is exact are all there is to know."""
_DTYPES = {str(dtype): dtype for dtype in VALUE_TYPES}


class Drawn:
    """The arrays of one density: what each rank gives, from what all know."""

    def __init__(self, order: BlocksOrder, density: float, choice: str, workers: int) -> None:
        self._order, self._workers = order, workers
        per_array = -(-order.elems // order.arrays)
        self.sizes = [min(per_array, order.elems - at) for at in range(0, order.elems, per_array)]
        self._density, self._choice = density, choice

    def chosen(self, index: int, rank: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which blocks of an array a rank has."""
        blocks = kernels.block_count(self.sizes[index], self._order.block_elems)
        key = [index, round(self._density * 1e6), 0 if self._choice == SAME else rank + 1]
        found = np.zeros(blocks, np.bool_)
        rng = np.random.default_rng(key)
        # As many as asked for, so that low densities are what they say; 1 at least.
        some = max(1, round(self._density * blocks)) if self._density else 0
        found[rng.choice(blocks, some, replace=False)] = True
        return found

    def array(self, index: int, rank: int) -> Array:
        """A rank's."""
        values = self._values(index, rank)
        blocks = np.repeat(self.chosen(index, rank), self._order.block_elems)[: values.size]
        values[~blocks] = 0
        return values

    def wanted(self, index: int) -> Array:
        """The sum."""
        total = self.array(index, 0)
        for rank in range(1, self._workers):
            total += self.array(index, rank)
        return total

    def union(self, index: int) -> int:
        """Blocks that some rank has."""
        found = self.chosen(index, 0)
        for rank in range(1, self._workers):
            found |= self.chosen(index, rank)
        return int(found.sum())

    def _values(self, index: int, rank: int) -> Array:
        cycle = (np.arange(_CYCLE) + rank % 3 + 1).astype(_DTYPES[self._order.dtype])
        size = self.sizes[index]
        return np.tile(cycle, -(-size // _CYCLE))[:size]


class Rank:
    """What one process does."""

    def __init__(self, session: Session, order: BlocksOrder) -> None:
        self._session, self._order = session, order
        self._rank, self._workers = session.ticket.rank, session.ticket.world_size

    def measure(self, density: float, choice: str) -> dict[str, Any]:
        """One density. What rank 0 tells."""
        order = self._order
        drawn = Drawn(order, density, choice, self._workers)
        given = [drawn.array(index, self._rank) for index in range(len(drawn.sizes))]
        arrays = [array.copy() for array in given]  # summed in place, as a training's are
        before = self._session.stats()
        wrong = self._wrong(drawn, self._sparse(arrays))
        after = self._session.stats()
        times: dict[str, list[float]] = {"sparse": [], "dense": []}
        ways = {"sparse": self._sparse, "dense": self._dense}
        for way in list(ways.values()) * _WARM_UP:
            self._sample(way, arrays, given)
        wrong += self._wrong(drawn, arrays)  # of a dense sum
        begun = time.perf_counter()
        while len(times["dense"]) < order.repeats:
            for name, way in ways.items():
                times[name].append(self._sample(way, arrays, given))
            over = time.perf_counter() - begun > order.seconds
            if self._agreed(over and len(times["dense"]) >= _LEAST_SAMPLES):
                break
        return {
            "choice": choice,
            "size_bytes": sum(array.nbytes for array in arrays),
            "blocks": after.sparse_blocks - before.sparse_blocks,
            "own": after.sparse_own_blocks - before.sparse_own_blocks,
            "union": after.sparse_union_blocks - before.sparse_union_blocks,
            "words": [it for i in range(len(arrays)) for it in self._words(drawn, i)],
            "times_s": times["sparse"],
            "dense_times_s": times["dense"],
            "memory_s": self._memory_s(given),
            "wrong": int(self._summed([wrong])[0]),
        }

    def _sparse(self, arrays: Sequence[Array]) -> Sequence[Array]:
        block_elems = self._order.block_elems
        return self._session.all_reduce_blocks(arrays, block_elems=block_elems, out=arrays)

    def _dense(self, arrays: Sequence[Array]) -> Sequence[Array]:
        handles = [self._session.all_reduce(it, out=it, async_op=True) for it in arrays]
        return [handle.wait() for handle in handles]

    def _sample(
        self,
        way: Callable[[Sequence[Array]], object],
        arrays: Sequence[Array],
        given: Sequence[Array],
    ) -> float:
        """Seconds of the slowest rank, from when all had come."""
        for array, values in zip(arrays, given, strict=True):
            np.copyto(array, values)
        self._summed([0])
        started = time.perf_counter()
        way(arrays)
        took_us = round((time.perf_counter() - started) * 1e6)
        mine = [took_us if rank == self._rank else 0 for rank in range(self._workers)]
        return float(self._summed(mine).max()) * 1e-6

    def _memory_s(self, arrays: Sequence[Array]) -> float:
        block_elems, started = self._order.block_elems, time.perf_counter()
        for array in arrays:
            marks, _ = kernels.mark(array, block_elems)
            which = np.flatnonzero(marks == 1).astype(np.int64)
            compact = kernels.gather(array, block_elems, which)
            kernels.spread(compact, block_elems, which, array, kernels.Others.BY_MARK, marks)
        return time.perf_counter() - started

    def _words(self, drawn: Drawn, index: int) -> tuple[int, int]:
        """Of counters, and of values: all of them from 9 tenths on."""
        size, block_elems = drawn.sizes[index], self._order.block_elems
        blocks, union = kernels.block_count(size, block_elems), drawn.union(index)
        counters = -(-blocks // (32 // counter_bits(self._workers)))
        return counters, size if 10 * union >= 9 * blocks else min(union * block_elems, size)

    def _wrong(self, drawn: Drawn, found: Sequence[Array]) -> int:
        spoilt, total = self._order.spoil, 0
        for index, array in enumerate(found):
            if index == 0:
                array[:spoilt] += 1
            total += int((array != drawn.wanted(index)).sum())
        return total

    def _agreed(self, here: bool) -> bool:
        """Rank 0's answer."""
        return bool(self._summed([int(here and self._rank == 0)])[0])

    def _summed(self, own: Sequence[int]) -> Array:
        return self._session.all_reduce(np.array(own, np.int32))


def main() -> None:
    """Measures all that is asked for."""
    asked = asked_of(BlocksOrder)
    rank, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    options = WorkerOptions(
        timeout_s=_TIMEOUT_S,
        host=os.environ.get("INA_HOST"),
        op_timeout_s=_TIMEOUT_S,
        transport="udp",
    )
    with Session.join(os.environ["INA_CONTROLLER"], _JOB, rank, workers, options) as session:
        for choice in asked.choices:
            for density in asked.densities:
                record = Rank(session, asked).measure(density, choice)
                if rank == 0:
                    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
