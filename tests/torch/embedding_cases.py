"""What ranks do in tests of embeddings; the same in one process, with torch's own."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from ina.embed.replicas import Replicas
from ina.torch.embedding import EmbeddingBag, EmbeddingBags, EmbeddingOptions, Table
from tests.worlds.processes.launch import Case

TABLES = (
    Table("user", 500, 16),
    Table("item", 90, 33, bag="mean"),
    Table("best", 40, 8, bag="max", shard="row"),
    Table("tag", 300, 64, shard="row"),
)
BATCH = 24
"""Samples of a rank in a step."""

Batch = dict[str, tuple[torch.Tensor, ...]]


def batch_of(rank: int, step: int) -> Batch:
    """Bags with repeated ids, empty ones, and weights for one table."""
    random = np.random.default_rng([rank, step])
    batch: Batch = {}
    for table in TABLES:
        counts = random.integers(0, 9, BATCH)
        ids = torch.from_numpy(random.zipf(1.2, int(counts.sum())) % table.rows)
        offsets = torch.from_numpy(np.cumsum(counts) - counts)
        batch[table.name] = (ids, offsets)
        if table.name == "tag":
            weights = random.standard_normal(ids.numel(), np.float32)
            batch[table.name] = (ids, offsets, torch.from_numpy(weights))
    return batch


def loss_of(vectors: dict[str, torch.Tensor]) -> torch.Tensor:
    return sum(
        ((one * one).sum() + one.sin().sum() for one in vectors.values()), start=torch.zeros(())
    )


@dataclass(frozen=True)
class Training:
    """Of ranks; each returns all weights after the last step."""

    optimizer: str
    steps: int
    exact: bool = False
    prefetch: bool = False
    refresh_steps: int = 100

    def __call__(self, rank: int, workers: int) -> dict[str, bytes]:
        torch.manual_seed(7)
        bags = EmbeddingBags(
            TABLES, exact=self.exact, options=EmbeddingOptions(refresh_steps=self.refresh_steps)
        )
        optimizer = bags.optimizer(self.optimizer, lr=RATES[self.optimizer])  # type: ignore[arg-type]
        batch = batch_of(rank, 0)
        for step in range(self.steps):
            following = batch_of(rank, step + 1)
            loss_of(bags(batch)).backward()  # type: ignore[no-untyped-call]
            if self.prefetch and step + 1 < self.steps:
                bags.prefetch(following)
            optimizer.step()
            batch = following
        weights = {table.name: bags.weight(table.name).numpy().tobytes() for table in TABLES}
        bags.close()
        return weights


class RowwiseAdagrad(torch.optim.Optimizer):
    """One mean of squares a row, in torch, for comparison."""

    def __init__(self, parameters: list[nn.Parameter], lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state.setdefault(weight, {"sum": torch.zeros(len(weight))})
                state["sum"] += (weight.grad**2).mean(1)
                step = weight.grad / (state["sum"].sqrt()[:, None] + 1e-10)
                weight.data -= group["lr"] * step


RATES = {"sgd": 0.001, "adagrad": 0.05, "rowwise_adagrad": 0.05}
"""With which the loss falls, and nothing grows beyond bounds."""
OPTIMIZERS = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=RATES["sgd"]),
    "adagrad": lambda weights: torch.optim.Adagrad(weights, lr=RATES["adagrad"]),
    "rowwise_adagrad": lambda weights: RowwiseAdagrad(weights, lr=RATES["rowwise_adagrad"]),
}


def in_one_process(name: str, steps: int, workers: int) -> dict[str, torch.Tensor]:
    """All tables, and the gradients of all ranks' batches, by torch's nn.EmbeddingBag."""
    torch.manual_seed(7)
    start = EmbeddingBags(TABLES)
    plain = {
        table.name: nn.EmbeddingBag(
            table.rows, table.dim, mode=table.bag, _weight=start.weight(table.name)
        )
        for table in TABLES
    }
    start.close()
    optimizer = OPTIMIZERS[name]([bag.weight for bag in plain.values()])  # type: ignore[no-untyped-call]
    for step in range(steps):
        optimizer.zero_grad()
        for rank in range(workers):
            batch = batch_of(rank, step)
            loss = loss_of({name: plain[name](*given) for name, given in batch.items()})
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return {name: bag.weight.detach() for name, bag in plain.items()}


def values_of(outcome: dict[str, bytes], name: str) -> torch.Tensor:
    """What a rank of :class:`Training` returned of a table."""
    (table,) = (table for table in TABLES if table.name == name)
    read = np.frombuffer(outcome[name], np.float32).reshape(table.rows, table.dim)
    return torch.from_numpy(read.copy())


@dataclass(frozen=True)
class Served:
    """A case whose rows lie in the service at this path, of ranks in turn."""

    case: Case
    paths: tuple[str, ...]

    def __call__(self, rank: int, workers: int) -> Any:
        os.environ["INA_EMBED"] = self.paths[rank % len(self.paths)]
        return self.case(rank, workers)


def says_what_fails(rank: int, workers: int) -> str:
    try:
        EmbeddingBags(TABLES)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def exact_forward(rank: int, workers: int) -> bool:
    """Rows that others own, pooled here, have the bits of nn.EmbeddingBag."""
    torch.manual_seed(3)
    bags = EmbeddingBags(TABLES, exact=True)
    same = True
    for table in TABLES:
        plain = nn.EmbeddingBag(
            table.rows, table.dim, mode=table.bag, _weight=bags.weight(table.name)
        )
        for step in range(5):
            given = batch_of(rank, step)[table.name]
            same &= torch.equal(bags({table.name: given})[table.name], plain(*given))
    bags.close()
    return same


def weights_have_gradients(rank: int, workers: int) -> float:
    torch.manual_seed(rank)
    bag = EmbeddingBag(50, 4, mode="sum")
    ids, offsets = torch.arange(10) * 5, torch.tensor([0, 4])
    weights = torch.rand(10, requires_grad=True)
    bag(ids, offsets, weights).sum().backward()
    assert weights.grad is not None
    error = (weights.grad - bag.weight("weight")[ids].sum(1)).abs().max()
    bag.close()
    return float(error)


def bad_ids(rank: int, workers: int) -> list[str]:
    """Nobody sends anything for them, and the next look-up is answered."""
    bags = EmbeddingBags(TABLES)
    said = []
    for ids in (torch.tensor([500]), torch.tensor([-1]), torch.tensor([1.5])):
        try:
            bags({"user": (ids, torch.tensor([0]))})
        except (IndexError, ValueError) as error:
            said.append(f"{type(error).__name__}: {error}")
    assert bags({"user": (torch.tensor([3]), torch.tensor([0]))})["user"].shape == (1, 16)
    bags.close()
    return said


def other_tables(rank: int, workers: int) -> str:
    try:
        EmbeddingBags([Table("a", 10 + rank, 4)])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def other_rates(rank: int, workers: int) -> str:
    bags = EmbeddingBags(TABLES)
    optimizer = bags.optimizer("sgd", lr=0.1 * (1 + rank // 2))
    loss_of(bags(batch_of(rank, 0))).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    try:
        bags(batch_of(rank, 1))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def saves_and_loads(rank: int, workers: int) -> bool:
    """A sharded state, taken up by another module, trains on to the same bits."""
    torch.manual_seed(1)
    first = EmbeddingBags(TABLES)
    optimizer = first.optimizer("adagrad", lr=0.1)
    for step in range(3):
        loss_of(first(batch_of(rank, step))).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    second = EmbeddingBags(TABLES)
    again = second.optimizer("adagrad", lr=0.1)
    second.load_state_dict(first.state_dict())
    dist.barrier()
    for bags, one in ((first, optimizer), (second, again)):
        loss_of(bags(batch_of(rank, 9))).backward()  # type: ignore[no-untyped-call]
        one.step()
    same = all(torch.equal(first.weight(t.name), second.weight(t.name)) for t in TABLES)
    first.close()
    second.close()
    return same


def one_is_killed(rank: int, workers: int) -> str:
    """What the others say, and of whom."""
    bags = EmbeddingBags(TABLES, options=EmbeddingOptions(patience_s=1.0, refresh_steps=0))
    optimizer = bags.optimizer("sgd", lr=0.1)
    for step in range(1000):
        if rank == 1 and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            loss_of(bags(batch_of(rank, step))).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "nothing"


@dataclass(frozen=True)
class Killed:
    """A rank is killed in the midst of whatever it does; the others say what they see then.

    Rows and gradients are whole numbers that do not depend on what is read, so each vector can be
    checked: a wrong one is the outcome.
    """

    victim: int
    trains: bool
    refresh_steps: int = 0

    ROWS = 60

    def __call__(self, rank: int, workers: int) -> str:
        options = EmbeddingOptions(
            patience_s=1.0, refresh_steps=self.refresh_steps, cache_bytes=1000
        )
        bags = EmbeddingBags([Table("a", self.ROWS, 8, shard="row")], options=options)
        bags.load_weight("a", torch.zeros(self.ROWS, 8) + torch.arange(self.ROWS)[:, None])
        optimizer = bags.optimizer("sgd", lr=1.0) if self.trains else None
        if rank == self.victim:
            kill = (os.getpid(), signal.SIGKILL)
            threading.Timer(0.3 + 0.1 * self.victim, os.kill, kill).start()
        want = torch.arange(self.ROWS, dtype=torch.float32)
        try:
            for step in range(1_000_000):
                ids = [self._ids(one, step) for one in range(workers)]
                vectors = bags({"a": ids[rank]})["a"]
                if not torch.equal(vectors, want[ids[rank]].sum(1)[:, None].expand(-1, 8)):
                    return f"step {step}: wrong vectors"
                if optimizer is not None:
                    vectors.sum().backward()
                    optimizer.step()
                    for one in ids:
                        want -= torch.bincount(one.reshape(-1), minlength=self.ROWS)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "nothing"

    def _ids(self, rank: int, step: int) -> torch.Tensor:
        """Few rows are asked for by all; with three rows a bag some owners add bags up."""
        random = np.random.default_rng([rank, step])
        return torch.from_numpy(random.zipf(1.3, (30, 3)) % self.ROWS)


@dataclass(frozen=True)
class ManySteps:
    """Training with refreshes, by popularity that drifts; a checksum of this rank's replicas."""

    steps: int

    def __call__(self, rank: int, workers: int) -> tuple[int, int, int]:
        torch.manual_seed(2)
        options = EmbeddingOptions(refresh_steps=10)
        bags = EmbeddingBags([Table("a", 300, 8), Table("b", 50, 4, bag="mean")], options=options)
        optimizer = bags.optimizer("rowwise_adagrad", lr=0.05)
        random = np.random.default_rng(rank)
        for step in range(self.steps):
            drawn = random.zipf(1.3, (2, 20, 1)) + step // 40
            batch = {"a": torch.from_numpy(drawn[0] % 300), "b": torch.from_numpy(drawn[1] % 50)}
            loss_of(bags(batch)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        bags.service.wait_for_version(self.steps)
        hot = sum(len(bags.service.native.hot_rows(table)) for table in range(2))
        outcome = (replicas_of(bags).digest(), hot, bags.service.refreshes)
        bags.close()
        return outcome


def replicas_of(bags: EmbeddingBags) -> Replicas:
    assert bags._hot is not None
    return bags._hot._replicas


SHIFT_AT = 50
REFRESH_STEPS = 20


def shifts(rank: int, workers: int) -> list[int]:
    """What this rank receives in each step; from one on other rows are asked for most."""
    options = EmbeddingOptions(refresh_steps=REFRESH_STEPS)
    rows, dim = 3000, 32
    bags = EmbeddingBags([Table("a", rows, dim, shard="row")], options=options)
    optimizer = bags.optimizer("sgd", lr=0.1)
    random = np.random.default_rng(rank)
    received = []
    for step in range(SHIFT_AT + 2 * REFRESH_STEPS):
        hot_bytes = bags.service.native.hot_values() * 4
        before = bags.service.native.traffic.received_bytes
        offset = 1000 if step >= SHIFT_AT else 0
        ids = (random.zipf(1.1, (300, 1)) % 100 + offset) % rows
        loss_of(bags({"a": torch.from_numpy(ids)})).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        bags.service.wait_for_version(step + 1)
        dist.barrier()  # nobody's next step is counted
        received.append(bags.service.native.traffic.received_bytes - before + hot_bytes)
    bags.close()
    return received


def cached(rank: int, workers: int) -> tuple[bool, int, int]:
    """In inference rows of others come once; loading makes them come again."""
    torch.manual_seed(5)
    bags = EmbeddingBags(
        [Table("a", 60, 8, shard="row")], options=EmbeddingOptions(cache_bytes=1 << 20)
    )
    ids = torch.arange(60)[:, None]
    same = True
    for _ in range(3):
        same &= torch.equal(bags({"a": ids})["a"], bags.weight("a"))
    sent = bags.service.native.traffic.sent_bytes
    hits = bags.service.native.cache.hits
    same &= torch.equal(bags({"a": ids})["a"], bags.weight("a"))
    sent = bags.service.native.traffic.sent_bytes - sent
    bags.load_weight("a", torch.full((60, 8), 3.0))
    same &= torch.equal(bags({"a": ids})["a"], torch.full((60, 8), 3.0))
    bags.close()
    return same, sent, hits
