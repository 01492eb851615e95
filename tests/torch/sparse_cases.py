"""What each worker does in test_sparse.py."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import ina.torch
from ina.host.errors import RanksDifferError

VALUES = 64
"""Of a packet."""
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32)


def _drawn(chance: random.Random, rank: int) -> tuple[torch.Tensor, dist.ReduceOp.RedOpType]:
    """The same kind on all ranks, and each rank's own rows: small whole numbers, so that sums of
    floats are exact."""
    shape = chance.choice([(50,), (70, 3), (5, 6, 4), (1, 200), (30, 0), (9000, 2)])
    sparse_dim = chance.randint(1, len(shape))
    dtype = chance.choice(DTYPES)
    op = dist.ReduceOp.SUM if dtype == torch.int32 else chance.choice(_OPS)
    own = random.Random(f"{chance.random()} {rank}")
    nnz = own.choice([0, 0, 1, 7, 60])
    indices = torch.tensor(
        [[own.randrange(max(1, size)) for _ in range(nnz)] for size in shape[:sparse_dim]],
        dtype=torch.int64,
    ).view(sparse_dim, nnz)
    if 0 in shape[:sparse_dim]:
        indices = indices[:, :0]
    values = torch.randint(-8, 9, (indices.shape[1], *shape[sparse_dim:])).mul(4).to(dtype)
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=True), op


_OPS = (dist.ReduceOp.SUM, dist.ReduceOp.AVG)


def _by_gloo(dense: torch.Tensor, op: dist.ReduceOp.RedOpType, workers: int) -> torch.Tensor:
    """Of whole numbers."""
    parts = [torch.zeros_like(dense, dtype=torch.float64) for _ in range(workers)]
    dist.all_gather(parts, dense.double())
    total = torch.stack(parts).sum(dim=0)
    return total / workers if op == dist.ReduceOp.AVG else total


def everything(rank: int, workers: int) -> ina.torch.GroupStats:
    """All cases that leave the group whole, in one group of processes."""
    warnings.simplefilter("ignore")  # torch's, of sparse tensors
    stats = _coo_sums(rank, workers)
    for case in (_float64, _embeddings, _no_gradient, _dense_blocks, _hook):
        case(rank, workers)
    return stats


def _coo_sums(rank: int, workers: int) -> ina.torch.GroupStats:
    """Of all kinds, many under way at once, among dense ones."""
    chance = random.Random(7)
    under_way: list[tuple[torch.Tensor, torch.Tensor, Any, dist.Work]] = []
    for number in range(24):
        tensor, op = _drawn(chance, rank)
        before = tensor.to_dense().clone()
        work = dist.all_reduce(tensor, op=op, async_op=True)
        assert work is not None
        under_way.append((tensor, before, op, work))
        if number % 3 == 0:
            dense = torch.full((700,), float(rank + number))
            work = dist.all_reduce(dense, async_op=True)
            assert work is not None
            under_way.append(
                (dense, torch.full((700,), float(rank + number)), dist.ReduceOp.SUM, work)
            )
    for _, _, _, work in reversed(under_way):
        work.wait()
    for tensor, before, op, work in under_way:
        assert work.result()[0] is tensor
        wanted = _by_gloo(before, op, workers)
        if tensor.layout is torch.sparse_coo:
            assert tensor.is_coalesced()
            nnz = [torch.zeros(1, dtype=torch.int64) for _ in range(workers)]
            dist.all_gather(nnz, torch.tensor([tensor._nnz()]))
            assert len({int(one) for one in nnz}) == 1
            tensor = torch.sparse_coo_tensor(
                tensor.indices(), tensor.values(), tensor.shape, check_invariants=True
            ).to_dense()
        torch.testing.assert_close(tensor.double(), wanted, rtol=2**-8, atol=0)
    return ina.torch.stats()


def _float64(rank: int, workers: int) -> None:
    """A type that the network does not sum goes through Gloo, and its sum comes back."""
    tensor = torch.sparse_coo_tensor(
        torch.tensor([[rank, 5]]), torch.ones(2, 3, dtype=torch.float64), (9, 3)
    )
    dist.all_reduce(tensor)
    wanted = torch.zeros(9, 3, dtype=torch.float64)
    wanted[:workers] = 1
    wanted[5] = workers
    assert torch.equal(tensor.to_dense(), wanted)


class _Words(nn.Module):
    """Two tables, of which a batch may use one alone, and a layer above."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.first = nn.EmbeddingBag(200, 6, mode="sum", sparse=True)
        self.second = nn.EmbeddingBag(300, 6, mode="sum", sparse=True)
        self.top = nn.Linear(6, 2)

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        bags = torch.zeros(1, dtype=torch.int64)
        both = self.first(first, bags) + self.second(second, bags)
        loss: torch.Tensor = self.top(both).square().sum()
        return loss


def _rows_of(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of them that differ from rank to rank, none on some."""
    chance = random.Random(100 * step + rank)
    counts = (0, 3, 40)[(rank + step) % 3], (17, 0, 0)[(rank + step) % 3]
    first, second = (
        torch.tensor([chance.randrange(size) for _ in range(count)], dtype=torch.int64)
        for count, size in zip(counts, (200, 300), strict=True)
    )
    return first, second


def _gradients(model: nn.Module) -> list[torch.Tensor]:
    return [it.grad.detach().clone() for it in model.parameters() if it.grad is not None]


def _embeddings(rank: int, workers: int) -> None:
    """Through DDP itself, by itself and by the hook beside Gloo."""
    state = ina.torch.HookState()
    for hooked in (False, True):
        model = DistributedDataParallel(_Words())
        if hooked:
            model.register_comm_hook(state, ina.torch.allreduce_hook)
        for step in range(4):
            model.zero_grad()
            torch.autograd.backward(model(*_rows_of(rank, step)))
            each = []
            for other in range(workers):
                alone = _Words()
                torch.autograd.backward(alone(*_rows_of(other, step)))
                each.append(_gradients(alone))
            for found, *parts in zip(_gradients(model), *each, strict=True):
                assert found.is_sparse == parts[0].is_sparse
                if found.is_sparse:
                    rows = {int(row) for part in parts for row in part.coalesce().indices()[0]}
                    assert found.coalesce().indices()[0].tolist() == sorted(rows)
                wanted = torch.stack([part.to_dense() for part in parts]).mean(dim=0)
                torch.testing.assert_close(found.to_dense(), wanted, rtol=1e-5, atol=1e-7)
    state.close()


def _no_gradient(rank: int, workers: int) -> None:
    """A table that no rank looks into: with no rows of it DDP has a gradient, without rows."""
    model = DistributedDataParallel(_Words(), find_unused_parameters=True)
    nothing = torch.zeros(0, dtype=torch.int64)
    torch.autograd.backward(model(torch.tensor([rank]), nothing))
    first, second, *_ = _gradients(model)
    assert first.coalesce().indices()[0].tolist() == list(range(workers))
    assert second._nnz() == 0


def _dense_blocks(rank: int, workers: int) -> None:
    """The dense sum, whatever is zero on all ranks; "auto" goes by what it found before."""
    for sparse in (30, "auto"):
        group = dist.new_group(backend="ina", pg_options=ina.torch.Options(sparse=sparse))
        works = []
        for number in range(20):
            tensor = torch.zeros(5000)
            if number < 18:
                tensor[rank * 100 : rank * 100 + 50 * number] = float(rank + 1)
            else:
                tensor += rank + 1
            before = tensor.clone()
            work = dist.all_reduce(tensor, group=group, async_op=True)
            works.append((tensor, before, work))
        for tensor, before, work in works:
            assert work is not None
            work.wait()
            assert torch.equal(tensor.double(), _by_gloo(before, dist.ReduceOp.SUM, workers))
        stats = ina.torch.stats(group)
        assert stats.network_all_reduces == 20
        assert stats.sparse_all_reduces == 20
        assert 0 < stats.density <= stats.union < 0.6
        dist.destroy_process_group(group)


def _hook(rank: int, workers: int) -> None:
    """Buckets by blocks through HookState, overlapped; the same as DDP's own average."""

    def net() -> nn.Module:
        torch.manual_seed(2)
        return nn.Sequential(nn.Embedding(500, 8), nn.Linear(8, 40), nn.ReLU(), nn.Linear(40, 8))

    inputs = torch.tensor([rank, 100 + rank])
    found = []
    for sparse in (None, 16, "auto"):
        model = DistributedDataParallel(net(), bucket_cap_mb=0.005)
        if sparse is not None:
            state = ina.torch.HookState(dist.new_group(backend="gloo"), sparse=sparse)
            model.register_comm_hook(state, ina.torch.allreduce_hook)
        for _ in range(3):
            model.zero_grad()
            torch.autograd.backward(model(inputs).square().mean())
        found.append(torch.cat([it.flatten() for it in _gradients(model)]))
        if sparse is not None:
            assert state.stats().sparse_all_reduces >= 3
            assert state.stats().union < 0.5
            state.close()
    for one in found[1:]:
        torch.testing.assert_close(one, found[0], rtol=1e-4, atol=1e-7)


def differ(rank: int, workers: int) -> list[str]:
    """Rank 1 has a sparse tensor of another kind; what each rank is told."""
    warnings.simplefilter("ignore")

    def coo(
        shape: tuple[int, ...], sparse_dim: int = 1, dtype: torch.dtype = torch.float32
    ) -> Callable[[], torch.Tensor]:
        def made() -> torch.Tensor:
            indices = torch.zeros(sparse_dim, 1, dtype=torch.int64)
            return torch.sparse_coo_tensor(
                indices, torch.ones(1, *shape[sparse_dim:], dtype=dtype), shape
            )

        return made

    usual = coo((10, 6))
    others: list[Callable[[], torch.Tensor]] = [
        coo((11, 6)),
        coo((10, 2, 3)),
        coo((10, 6), sparse_dim=2),
        coo((1000, 6)),
        coo((10, 6), dtype=torch.float16),
        lambda: torch.zeros(10, 6),
    ]
    said = []
    for other in others:
        group = dist.new_group(backend="ina")
        tensor = other() if rank == 1 else usual()
        with pytest.raises(RanksDifferError) as caught:
            dist.all_reduce(tensor, group=group)
        said.append(str(caught.value))
        dist.destroy_process_group(group)
    return said
