"""Worker of ``ina bench lookups``, one process a rank. Rank 0 prints one JSON line.

Rows and gradients are small whole numbers, so both ways must read the same after any number of
steps, bit for bit. Gloo's way is that of TorchRec for tables that lie on one rank each: ids go to
the owners, their sums come back, and gradients go the same way again; of ids of known bags only
32 bits are sent, and no lengths.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from ina.bench.lookups import WARM_STEPS, WAYS, LookupsOrder
from ina.bench.testbed import asked_of
from ina.bench.torch.carried import carried, device_of
from ina.embed.zipf import Zipf
from ina.torch.embedding import EmbeddingBags, Table
from ina.torch.env import Settings

_MODULUS = 7
Batch = list[torch.Tensor]
"""Of each table ids (samples, rows a bag), int64."""


def first_row(table: int, rows: NDArray[np.int64], dim: int) -> NDArray[np.float32]:
    """Whole numbers that follow from where they are."""
    columns = np.arange(dim)
    return ((rows[:, None] * 3 + columns + table) % _MODULUS).astype(np.float32)


@dataclass
class Sampled:
    """What one way needed."""

    times_s: list[float] = field(default_factory=list)
    moved: list[tuple[float, float]] = field(default_factory=list)
    """Received, and sent, of each sample."""
    wrong: int = 0

    def record(self) -> dict[str, Any]:
        """For rank 0's line."""
        received, sent = np.median(self.moved, axis=0).tolist() if self.moved else (None, None)
        return {
            **{"times_s": self.times_s, "wrong": self.wrong},
            **{"received_bytes": received, "sent_bytes": sent},
        }


class Ina:
    """What ships."""

    def __init__(self, order: LookupsOrder) -> None:
        self._names = [f"c{i + 1}" for i in range(len(order.tables))]
        tables = [
            Table(name, rows, order.dim)
            for name, (rows, _) in zip(self._names, order.tables, strict=True)
        ]
        self._bags = EmbeddingBags(tables)
        for number in range(len(tables)):
            rows = self._bags.service.rows(number)
            self._bags.service.write(number, first_row(number, rows, order.dim))
        self._optimizer = self._bags.optimizer("sgd", lr=1.0)
        dist.barrier()

    def train(self, batch: Batch) -> list[torch.Tensor]:
        """Vectors; rows are updated by a gradient of one for each."""
        vectors = self._bags(dict(zip(self._names, batch, strict=True)))
        found = [vectors[name] for name in self._names]
        torch.autograd.backward(found, [torch.ones_like(one) for one in found])
        self._optimizer.step()
        self._bags.service.wait_for_version(self._bags.steps)
        return found

    def infer(self, batch: Batch) -> list[torch.Tensor]:
        """Vectors."""
        with torch.no_grad():
            vectors = self._bags(dict(zip(self._names, batch, strict=True)))
        return [vectors[name] for name in self._names]

    def close(self) -> None:
        """Collective."""
        self._bags.close()


class Gloo:
    """Tables on one rank each; all_to_all_single of ids, of sums, and of gradients."""

    def __init__(self, order: LookupsOrder) -> None:
        self._group: Any = dist.new_group(backend="gloo")
        self._rank, self._ranks = dist.get_rank(), dist.get_world_size()
        self._order = order
        self._owner = self._places(order)
        self._own = [t for t, rank in enumerate(self._owner) if rank == self._rank]
        self._rows = {
            t: torch.from_numpy(first_row(t, np.arange(order.tables[t][0]), order.dim))
            for t in self._own
        }

    def _places(self, order: LookupsOrder) -> list[int]:
        """By what is sent for each, so that all ranks send alike."""
        load = [0] * self._ranks
        owner = [0] * len(order.tables)
        for table in sorted(range(len(owner)), key=lambda one: -order.tables[one][0]):
            owner[table] = min(range(self._ranks), key=load.__getitem__)
            load[owner[table]] += 1
        return owner

    def _of(self, rank: int) -> list[int]:
        return [t for t, owner in enumerate(self._owner) if owner == rank]

    def _exchange(self, parts: list[torch.Tensor], sizes: list[int]) -> list[torch.Tensor]:
        """Each rank's part goes there; from each comes one of so many elements."""
        out = torch.empty(sum(sizes), dtype=parts[0].dtype)
        flat = torch.cat([part.reshape(-1) for part in parts])
        dist.all_to_all_single(
            out, flat, sizes, [part.numel() for part in parts], group=self._group
        )
        return list(torch.split(out, sizes))

    def infer(self, batch: Batch) -> list[torch.Tensor]:
        """Vectors."""
        return self._forward(batch)[0]

    def train(self, batch: Batch) -> list[torch.Tensor]:
        """Vectors; rows are updated by a gradient of one for each."""
        vectors, asked = self._forward(batch)
        samples, dim = len(batch[0]), self._order.dim
        gradients = [torch.ones(len(self._of(rank)), samples, dim) for rank in range(self._ranks)]
        own = samples * len(self._own) * dim
        for ids, came in zip(asked, self._exchange(gradients, [own] * self._ranks), strict=True):
            of_table = came.reshape(len(self._own), samples, dim)
            for place, table in enumerate(self._own):
                bag = ids[table].shape[1]
                each = of_table[place].repeat_interleave(bag, dim=0)
                self._rows[table].index_add_(0, ids[table].reshape(-1), each, alpha=-1.0)
        return vectors

    def _forward(self, batch: Batch) -> tuple[list[torch.Tensor], list[dict[int, torch.Tensor]]]:
        """Vectors, and of each rank the ids that it has asked for here, by table."""
        samples, dim = len(batch[0]), self._order.dim
        parts = [
            torch.cat([batch[t].reshape(-1) for t in self._of(rank)] or [batch[0][:0].reshape(-1)])
            for rank in range(self._ranks)
        ]
        own_ids = sum(samples * self._order.tables[t][1] for t in self._own)
        came = self._exchange([part.int() for part in parts], [own_ids] * self._ranks)
        asked = [self._ids(flat.long(), samples) for flat in came]
        sums = [
            torch.cat([self._pooled(ids[t], t) for t in self._own] or [torch.empty(0, dim)])
            for ids in asked
        ]
        sizes = [samples * len(self._of(rank)) * dim for rank in range(self._ranks)]
        vectors: dict[int, torch.Tensor] = {}
        for rank, flat in enumerate(self._exchange(sums, sizes)):
            tables = self._of(rank)
            vectors.update(zip(tables, flat.reshape(len(tables), samples, dim), strict=True))
        return [vectors[t] for t in range(len(batch))], asked

    def _ids(self, flat: torch.Tensor, samples: int) -> dict[int, torch.Tensor]:
        bags = [self._order.tables[t][1] for t in self._own]
        parts = torch.split(flat, [samples * bag for bag in bags])
        return {
            t: part.reshape(samples, bag)
            for t, part, bag in zip(self._own, parts, bags, strict=True)
        }

    def _pooled(self, ids: torch.Tensor, table: int) -> torch.Tensor:
        return torch.nn.functional.embedding_bag(ids, self._rows[table], mode="sum")

    def close(self) -> None:
        """Nothing is left to do."""


class Batches:
    """Each rank's, by Zipf's law; frequent rows are anywhere in a table, not in front."""

    def __init__(self, order: LookupsOrder) -> None:
        self._order = order
        self._random = np.random.default_rng([1, dist.get_rank()])
        self._rows = {rows: Zipf(rows, order.zipf) for rows, _ in order.tables}

    def make(self, samples: int) -> Batch:
        """The next one."""
        return [
            torch.from_numpy(self._rows[rows].draw(self._random, (samples, bag)))
            for rows, bag in self._order.tables
        ]


class Turns:
    """Measures the ways in turns."""

    def __init__(self, order: LookupsOrder) -> None:
        self._order = order
        self._gloo: Any = dist.new_group(backend="gloo")
        self._batches = Batches(order)
        self._device = device_of(Settings.from_environ().host)
        self._ways: dict[str, Any] = {"ina": Ina(order), "gloo": Gloo(order)}

    def measure(self) -> dict[str, Any]:
        """Of each phase, what each way needed."""
        for _ in range(WARM_STEPS):
            batch = self._batches.make(self._order.samples)
            for name in WAYS:
                self._ways[name].train(batch)
        order = self._order
        training = self._phase(order.samples, lambda way: way.train, order.repeats)
        inference = self._phase(order.queries, lambda way: way.infer, 20 * order.repeats)
        for way in self._ways.values():
            way.close()
        return {"training": training, "inference": inference}

    def _phase(
        self, samples: int, work_of: Callable[[Any], Callable[[Batch], Any]], repeats: int
    ) -> dict[str, Any]:
        found = {name: Sampled() for name in WAYS}
        begun = time.perf_counter()
        for turn in range(repeats):
            batch = self._batches.make(samples)
            both = [self._sample(found[name], work_of(self._ways[name]), batch) for name in WAYS]
            self._check(found["ina"], *both)
            if not self._agreed(time.perf_counter() - begun < self._order.seconds or turn < 2):
                break
        return {name: one.record() for name, one in found.items()}

    def _agreed(self, here: bool) -> bool:
        """Rank 0's answer."""
        said = torch.tensor([int(here)])
        dist.broadcast(said, 0, group=self._gloo)
        return bool(said.item())

    def _sample(self, way: Sampled, work: Callable[[Batch], Any], batch: Batch) -> Any:
        dist.barrier(group=self._gloo)
        before, started = carried(self._device), time.perf_counter()
        vectors = work(batch)
        mine = torch.tensor([time.perf_counter() - started], dtype=torch.float64)
        dist.barrier(group=self._gloo)
        after = carried(self._device)
        dist.all_reduce(mine, dist.ReduceOp.MAX, group=self._gloo)
        way.times_s.append(mine.item())
        if before is not None and after is not None:
            moved = torch.tensor([b - a for a, b in zip(before, after, strict=True)]).double()
            dist.all_reduce(moved, group=self._gloo)
            received, sent = (moved / dist.get_world_size()).tolist()
            way.moved.append((received, sent))
        return vectors

    def _check(self, way: Sampled, one: list[torch.Tensor], other: list[torch.Tensor]) -> None:
        spoilt = other[0].clone()
        spoilt.view(-1)[: self._order.spoil] += 1
        pairs = zip(one, [spoilt, *other[1:]], strict=True)
        wrong = torch.tensor([sum(int((a != b).sum()) for a, b in pairs)])
        dist.all_reduce(wrong, group=self._gloo)
        way.wrong += int(wrong.item())


def main() -> None:
    """Measure; one JSON line."""
    order = asked_of(LookupsOrder)
    torch.set_num_threads(1)
    dist.init_process_group("ina")
    record = Turns(order).measure()
    if dist.get_rank() == 0:
        print(json.dumps(record), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
