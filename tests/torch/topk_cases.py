"""What each worker does in test_topk.py."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.distributed as dist

import ina.torch
from ina.torch.errors import SettingError
from tests.torch.lowbit_cases import Steps, exact, net

BLOCK, RATIO = 50, 0.1


class Watched(Steps):
    """Steps whose buckets are looked at: of each, its parameters' sizes and its average."""

    def __init__(self, rank: int, **asked: Any) -> None:
        self.sizes: list[tuple[int, ...]] = []
        self.averages: list[torch.Tensor] = []
        """In the order of the calls: under loss a bucket may be done before an earlier one."""

        # No annotation of the result: it would be text, and DDP compares it with a class.
        def hook(state, bucket):  # type: ignore[no-untyped-def]
            self.sizes.append(tuple(it.numel() for it in bucket.parameters()))
            return self.watched(ina.torch.topk_hook(state, bucket))

        asked = {"block_elems": BLOCK, "ratio": RATIO, "warmup_steps": 0, **asked}
        super().__init__(rank, ina.torch.TopkState, hook, **asked)

    def watched(
        self, average: torch.futures.Future[torch.Tensor]
    ) -> torch.futures.Future[torch.Tensor]:
        place = len(self.averages)
        self.averages.append(torch.empty(0))

        def saw(done: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
            self.averages[place] = done.value().clone()
            return done.value()

        return average.then(saw)

    def kept(self) -> torch.Tensor:
        """Flat, as gradients are."""
        kept = self.state.state_dict()["kept"]
        return torch.cat([kept[name].flatten() for name, _ in self.inner.named_parameters()])


def same_on_all(tensor: torch.Tensor) -> bool:
    peers = [torch.zeros_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(peers, tensor)
    return all(torch.equal(tensor, peer) for peer in peers)


def mean_of(tensor: torch.Tensor) -> torch.Tensor:
    """By Gloo, of all ranks'."""
    every = [torch.zeros_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(every, tensor)
    return torch.stack(every).mean(dim=0)


def everything(rank: int, workers: int) -> None:
    """All cases, in one group of processes."""
    for case in (
        _nothing_is_lost,
        _the_largest_together,
        _warm_up,
        _goes_on,
        _not_finite,
        _narrow,
        _refused,
    ):
        case(rank)


def _nothing_is_lost(rank: int) -> None:
    """What was sent and what is kept make all gradients, and buckets that change lose nothing."""
    right, steps = exact(rank), Watched(rank)
    sums = torch.zeros_like(right)
    for number in range(1, 6):
        sums += steps.gradient()
        left = mean_of(steps.kept())
        torch.testing.assert_close(sums + left, number * right, rtol=1e-4, atol=1e-6)
    assert float(left.norm()) > 0.1 * float(right.norm())
    buckets = len(steps.sizes) // 5
    assert sorted(steps.sizes[:buckets]) != sorted(steps.sizes[-buckets:])  # DDP built them anew
    for average in steps.averages:
        blocks = -(-len(average) // BLOCK)
        assert int(average.count_nonzero()) <= math.ceil(RATIO * blocks) * BLOCK
        assert same_on_all(average)
    steps.state.close()


def _the_largest_together(rank: int) -> None:
    """Blocks are those whose norms' sum over ranks is largest, and hold the average."""
    steps = Watched(rank)
    mine: list[torch.Tensor] = []

    def noted(state, bucket):  # type: ignore[no-untyped-def]
        mine.append(bucket.buffer().clone())
        return steps.watched(ina.torch.topk_hook(state, bucket))

    other = Steps(rank, ina.torch.TopkState, noted, block_elems=BLOCK, ratio=0.3, warmup_steps=0)
    other.gradient()
    for own, average in zip(mine, steps.averages, strict=True):
        blocks = torch.nn.functional.pad(own, (0, -len(own) % BLOCK)).view(-1, BLOCK)
        norms = mean_of(blocks.norm(dim=1))
        count = math.ceil(0.3 * len(blocks))
        chosen = sorted(torch.topk(norms, count).indices.tolist())
        wanted = torch.zeros_like(blocks)
        wanted[chosen] = mean_of(blocks)[chosen]
        torch.testing.assert_close(average, wanted.view(-1)[: len(own)], rtol=1e-4, atol=1e-7)
    other.state.close()
    steps.state.close()


def _warm_up(rank: int) -> None:
    right, steps = exact(rank), Watched(rank, warmup_steps=2)
    for _ in range(2):
        torch.testing.assert_close(steps.gradient(), right, rtol=1e-4, atol=1e-7)
        assert not steps.state.state_dict()["kept"]
    assert int(steps.gradient().count_nonzero()) < len(right) / 4
    assert steps.state.state_dict()["kept"]
    steps.state.close()


def _goes_on(rank: int) -> None:
    """A training that goes on from a checkpoint has the bits of the one that did not stop."""
    first, second = Watched(rank), Watched(rank, warmup_steps=1)
    for _ in range(3):
        first.gradient()
    saved = first.state.state_dict()
    wanted = [first.gradient() for _ in range(2)]
    second.gradient()  # so that DDP has its buckets
    second.state.load_state_dict(saved)
    assert all(torch.equal(second.gradient(), it) for it in wanted)
    with pytest.raises(SettingError, match="TopkState: the model has no parameter 'other'"):
        second.state.load_state_dict({"kept": {"other": torch.zeros(1)}, "step": 1})
    first.state.close()
    second.state.close()


def _not_finite(rank: int) -> None:
    """One rank's gradient holds Inf once: all see NaN, and what is kept stays finite."""
    right, steps = exact(rank), Watched(rank)
    steps.gradient()
    good, before = steps.inputs.clone(), steps.kept()
    if rank == 1:
        steps.inputs[0, 0] = torch.inf
    assert steps.gradient().isnan().any()
    steps.inputs.copy_(good)
    assert steps.state.skipped > 0
    assert steps.kept().isfinite().all()
    assert not torch.equal(before, torch.zeros_like(before))
    kept = mean_of(steps.kept())
    sums = torch.zeros_like(right)
    for number in range(6):
        scale = 1024.0 if number < 3 else 2048.0  # as a GradScaler's, which grows
        sums += steps.gradient(scale) / scale
    found = sums + mean_of(steps.kept())
    torch.testing.assert_close(found, kept + 6 * right, rtol=1e-4, atol=1e-5)
    steps.state.close()


def _narrow(rank: int) -> None:
    """In 16 bits, on a group of ina's."""
    group = dist.new_group(backend="ina")
    steps = [Watched(rank, wire=wire, process_group=group) for wire in ("32", "16")]
    wide, narrow = (it.gradient() for it in steps)
    assert not torch.equal(wide, narrow)
    assert float((wide - narrow).norm()) < 1e-3 * float(wide.norm())
    dist.destroy_process_group(group)


def _refused(rank: int) -> None:
    for asked, said in (
        ({"ratio": 0.0}, "ratio=0: want more than 0, at most 1"),
        ({"block_elems": 0}, "block_elems=0: want 1 or more"),
        ({"warmup_steps": -1}, "warmup_steps=-1: want 0 or more"),
        ({"wire": "12"}, "wire=12: want 32"),
    ):
        with pytest.raises(SettingError, match=said):
            ina.torch.TopkState(net(), **asked)
