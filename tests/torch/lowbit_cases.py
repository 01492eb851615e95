"""What each worker does in test_lowbit.py."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import ina.torch
from ina.torch.errors import SettingError
from tests.torch.hook_cases import gradients

SIZES = (20, 90, 90, 5)


def net() -> nn.Sequential:
    torch.manual_seed(3)
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(SIZES):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def flat(model: nn.Module) -> torch.Tensor:
    return torch.cat([it.grad.flatten() for it in model.parameters() if it.grad is not None])


class Steps:
    """Backward passes of the same batch, whose gradients are the same each time."""

    def __init__(
        self, rank: int, make: Any = ina.torch.LowbitState, hook: Any = None, **asked: Any
    ) -> None:
        self.inner = net()
        self.model = DistributedDataParallel(self.inner, bucket_cap_mb=0.01)
        self.state = make(self.model, **asked)
        self.model.register_comm_hook(self.state, hook or ina.torch.lowbit_hook)
        generator = torch.Generator().manual_seed(rank)
        self.inputs = torch.randn(16, 20, generator=generator)

    def gradient(self, scale: float = 1.0) -> torch.Tensor:
        self.model.zero_grad()
        self.state.set_scale(scale)
        torch.autograd.backward(self.model(self.inputs).square().mean() * scale)
        return flat(self.inner)


def exact(rank: int) -> torch.Tensor:
    """What float32 gives for the batches of :class:`Steps`."""
    inner = net()
    # Whatever wire the ranks' own group has.
    model = DistributedDataParallel(inner, process_group=dist.new_group(backend="gloo"))
    generator = torch.Generator().manual_seed(rank)
    torch.autograd.backward(model(torch.randn(16, 20, generator=generator)).square().mean())
    return flat(inner)


def _off(found: torch.Tensor, right: torch.Tensor) -> float:
    """The error's length, as a share of the gradient's."""
    return float((found - right).norm() / right.norm())


def hooks(rank: int, workers: int) -> dict[str, Any]:
    """How far off the hook is, by what it was asked for."""
    right = exact(rank)
    found: dict[str, Any] = {}
    cases: dict[str, dict[str, Any]] = {
        "8": {},
        "8, no feedback": {"error_feedback": False},
        "8, no transform": {"hadamard": False},
        "16": {"bits": 16},
    }
    for name, asked in cases.items():
        steps = Steps(rank, **asked)
        sums = torch.zeros_like(right)
        once, again = steps.gradient(), steps.gradient()
        sums = once + again
        for _ in range(10):
            sums += steps.gradient()
        found[name] = (_off(once, right), _off(sums / 12, right))
        steps.state.close()
    peers = [torch.zeros_like(once) for _ in range(workers)]
    dist.all_gather(peers, once)
    found["same on all"] = all(torch.equal(once, peer) for peer in peers)
    return found


def goes_on(rank: int, workers: int) -> bool:
    """A training that goes on from a checkpoint has the bits of the one that did not stop."""
    first = Steps(rank, seed=5)
    for _ in range(3):
        first.gradient()
    saved = first.state.state_dict()
    wanted = [first.gradient() for _ in range(2)]
    second = Steps(rank, seed=5)
    second.gradient()  # so that DDP has its buckets
    second.state.load_state_dict(saved)
    with pytest.raises(SettingError, match="the model has no parameter 'other'"):
        second.state.load_state_dict({"kept": {"other": torch.zeros(1)}, "step": 1})
    same = all(torch.equal(second.gradient(), it) for it in wanted)
    first.state.close()
    second.state.close()
    return same


def not_finite(rank: int, workers: int) -> tuple[bool, int, float]:
    """One rank's gradient holds Inf once: all see NaN, and what is kept stays finite."""
    steps = Steps(rank)
    steps.gradient()
    good = steps.inputs.clone()
    if rank == 1:
        steps.inputs[0, 0] = torch.inf
    seen = bool(torch.isnan(steps.gradient()).any())
    steps.inputs.copy_(good)
    right = exact(rank)
    sums = torch.zeros_like(right)
    for number in range(20):
        scale = 1024.0 if number < 10 else 2048.0  # as a GradScaler's, which grows
        sums += steps.gradient(scale) / scale
    skipped = steps.state.skipped
    steps.state.close()
    return seen, skipped, _off(sums / 20, right)


def on_a_group_with_a_wire(rank: int, workers: int) -> bool:
    """How the group's own tensors travel is nothing to the hook: the same bits."""
    group = dist.new_group(backend="ina", pg_options=ina.torch.Options(wire="8"))
    return torch.equal(Steps(rank).gradient(), Steps(rank, process_group=group).gradient())


def refused(rank: int, workers: int) -> str:
    with pytest.raises(SettingError, match="bits=4: want 8 or 16"):
        ina.torch.LowbitState(net(), bits=4)
    return str(gradients(rank, steps=1).numel())
