"""Worker of ``ina bench embedding``, one process a rank. Rank 0 prints one JSON line.

A batch looks rows up whose frequencies are Zipf's; its gradient is one tensor, sparse with a row
for each lookup, as ``torch.nn.Embedding(sparse=True)`` makes it, or dense.
"""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from ina.bench.embedding import WAYS, EmbeddingOrder
from ina.bench.testbed import asked_of
from ina.bench.torch.carried import carried, device_of
from ina.torch.env import Settings

_MODULUS = 7
"""Gradients are whole numbers below it: each way sums them exactly."""


@dataclass
class Sampled:
    """What one of them needed."""

    times_s: list[float] = field(default_factory=list)
    sent_bytes: float | None = None
    received_bytes: float | None = None
    wrong: int = 0


class Batches:
    """Each rank's lookups; the same on all ranks that make them."""

    def __init__(self, order: EmbeddingOrder, workers: int) -> None:
        frequency = np.arange(1, order.rows + 1, dtype=np.float64) ** -order.zipf
        upto = np.cumsum(frequency)
        # Frequent rows are anywhere in a table, not in front.
        places = np.random.default_rng(0).permutation(order.rows)
        self._order = order
        self.numbers = []
        for rank in range(workers):
            drawn = np.random.default_rng(1 + rank).random(order.lookups) * upto[-1]
            found = np.minimum(np.searchsorted(upto, drawn), order.rows - 1)
            self.numbers.append(torch.from_numpy(places[found]))

    def gradient(self, rank: int) -> torch.Tensor:
        """Sparse, with a row for each lookup."""
        order = self._order
        lookups = torch.arange(order.lookups).unsqueeze(1)
        values = ((lookups + torch.arange(order.columns) + rank) % _MODULUS).float()
        shape = (order.rows, order.columns)
        return torch.sparse_coo_tensor(self.numbers[rank].unsqueeze(0), values, shape)

    def total(self) -> torch.Tensor:
        """Of all ranks, sparse and coalesced."""
        parts = [self.gradient(rank) for rank in range(len(self.numbers))]
        indices = torch.cat([part._indices() for part in parts], dim=1)
        values = torch.cat([part._values() for part in parts])
        return torch.sparse_coo_tensor(indices, values, parts[0].shape).coalesce()


class Turns:
    """Measures the ways in turns."""

    def __init__(self, order: EmbeddingOrder) -> None:
        self._order = order
        self._gloo: Any = dist.new_group(backend="gloo")
        self._rank = dist.get_rank()
        self._batches = Batches(order, dist.get_world_size())
        self._sparse = self._batches.gradient(self._rank)
        self._dense = self._sparse.to_dense()
        self._total = self._batches.total()
        self._device = device_of(Settings.from_environ().host)
        self.ways = {name: Sampled() for name in WAYS}

    @property
    def own_rows(self) -> int:
        """That this rank's batch looks up."""
        return len(set(self._batches.numbers[self._rank].tolist()))

    @property
    def union_rows(self) -> int:
        """That some rank's does."""
        return int(self._total._nnz())

    def measure(self) -> None:
        """Samples until there are enough, or the time is over: one of each way in any case."""
        begun, turns = time.perf_counter(), 0
        for name, way in self.ways.items():
            self._check(way, self._sample(name, way))
        while self._agreed(self._order.goes_on(turns, time.perf_counter() - begun)):
            for name, way in self.ways.items():
                if not turns:  # the first one was to warm up
                    way.times_s.clear()
                self._sample(name, way)
            turns += 1

    def _agreed(self, here: bool) -> bool:
        """Rank 0's answer."""
        said = torch.tensor([int(here)])
        dist.broadcast(said, 0, group=self._gloo)
        return bool(said.item())

    def _sample(self, name: str, way: Sampled) -> torch.Tensor:
        print(f"{name}: sample {len(way.times_s) + 1}", flush=True)  # a log tells who was late
        backend, form = name.split()
        tensor = (self._sparse if form == "sparse" else self._dense).clone()
        group = None if backend == "ina" else self._gloo
        dist.barrier(group=self._gloo)
        before, started = carried(self._device), time.perf_counter()
        dist.all_reduce(tensor, group=group)
        mine = torch.tensor([time.perf_counter() - started], dtype=torch.float64)
        after = carried(self._device)
        dist.all_reduce(mine, dist.ReduceOp.MAX, group=self._gloo)
        way.times_s.append(mine.item())
        if before is not None and after is not None:
            moved = torch.tensor([b - a for a, b in zip(before, after, strict=True)]).double()
            dist.all_reduce(moved, group=self._gloo)
            way.received_bytes, way.sent_bytes = (moved / dist.get_world_size()).tolist()
        return tensor

    def _check(self, way: Sampled, found: torch.Tensor) -> None:
        """Counts wrong values: of the rows in the total, and those that ought to be zero."""
        rows, wanted = self._total.indices()[0], self._total.values()
        if found.is_sparse:
            found = found.coalesce()
            same = torch.equal(found.indices()[0], rows)
            values = found.values() if same else torch.zeros_like(wanted)
            elsewhere = 0
        else:
            values = found[rows]
            elsewhere = int(found.count_nonzero()) - int(values.count_nonzero())
        spoilt = wanted.clone()
        spoilt.view(-1)[: self._order.spoil] += 1
        wrong = torch.tensor([int((values != spoilt).sum()) + elsewhere])
        dist.all_reduce(wrong, group=self._gloo)
        way.wrong = int(wrong.item())


def main() -> None:
    """Measure; one JSON line."""
    order = asked_of(EmbeddingOrder)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Sparse")
    dist.init_process_group("ina")
    turns = Turns(order)
    turns.measure()
    if dist.get_rank() == 0:
        record = {
            "own_rows": turns.own_rows,
            "union_rows": turns.union_rows,
            "ways": {name: vars(way) for name, way in turns.ways.items()},
        }
        print(json.dumps(record), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
