"""A model of GPT-2's shape that FSDP2 shards, and one with its parameters that computes nothing.

The second has the first one's collectives in the first one's order, one step like another, and
knows what each of them must bring.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from ina.bench.fsdp import Sharded
from ina.bench.torch.models import Gradients, passed_on

_PARAMETER_MODULUS, _GRADIENT_MODULUS = 89, 97
Shape = torch.Size


class Passing(nn.Module):
    """A layer's parameters, without what it computes."""

    def __init__(self, shapes: Iterable[Shape], gradients: Gradients) -> None:
        super().__init__()
        self.values = nn.ParameterList(nn.Parameter(_numbers(shape)) for shape in shapes)
        self._gradients = gradients
        self.checks = False
        self.wrong = 0
        """Gathered values that were not this layer's, in calls since ``checks``."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``, as an autograd function of the parameters."""
        if self.checks:
            wanted = ((it, _numbers(it.shape)) for it in self.values)
            self.wrong += sum(int((here.detach() != want).sum()) for here, want in wanted)
        return passed_on(x, self._gradients, self.values)


class Bare(nn.Module):
    """The sharded model's parameters: those of its root, and those of each block."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        blocks = list(blocks_of(net))
        inner = {id(it) for block in blocks for it in block.parameters()}
        root = [it.shape for it in net.parameters() if id(it) not in inner]
        most = max(it.numel() for it in net.parameters())
        self.gradients = Gradients(most, 1, 0.0, 0)
        self.gradients.memory.copy_(torch.arange(most) % _GRADIENT_MODULUS).add_(dist.get_rank())
        self.root = Passing(root, self.gradients)
        self.blocks = nn.ModuleList(
            Passing([it.shape for it in block.parameters()], self.gradients) for block in blocks
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A number."""
        x = self.root(x.requires_grad_())
        for block in self.blocks:
            x = block(x)
        return x.sum()

    @property
    def layers(self) -> list[Passing]:
        """The root's, then the blocks'."""
        return [it for it in self.modules() if isinstance(it, Passing)]


def _numbers(shape: Shape) -> torch.Tensor:
    return (torch.arange(shape.numel()) % _PARAMETER_MODULUS).float().view(shape)


def blocks_of(net: nn.Module) -> Iterable[nn.Module]:
    """What FSDP2 gathers one at a time; the rest is the root's."""
    return net.get_submodule("blocks").children()


def shard(net: nn.Module, group: dist.ProcessGroup) -> None:
    """Each block, and the rest."""
    mesh = DeviceMesh.from_group(group, "cpu")
    for block in blocks_of(net):
        fully_shard(block, mesh=mesh)
    fully_shard(net, mesh=mesh)


def groups_of(net: nn.Module, workers: int) -> list[Sharded]:
    """Of a net that is not sharded yet: what :func:`shard` makes of it.

    Each parameter is cut by its first dimension, which is filled up. What the root has stays whole
    until its backward.
    """

    def part(parameters: Iterable[nn.Parameter]) -> int:
        return sum(math.ceil(it.shape[0] / workers) * math.prod(it.shape[1:]) for it in parameters)

    blocks = [list(block.parameters()) for block in blocks_of(net)]
    inner = {id(it) for block in blocks for it in block}
    root = [it for it in net.parameters() if id(it) not in inner]
    return [Sharded(part(root), 1), *(Sharded(part(block), 2) for block in blocks)]


def wrong_in_step(net: Bare) -> int:
    """Values that a step of a sharded net brings to this rank, and that are not what they must be:
    gathered parameters, and gradients, which are the mean over the ranks."""
    for layer in net.layers:
        layer.checks, layer.wrong = True, 0
    step(net)
    wrong = sum(layer.wrong for layer in net.layers)
    for layer in net.layers:
        layer.checks = False
    mean_of_ranks = (dist.get_world_size() - 1) / 2
    for parameter in net.parameters():
        sharded: Any = parameter
        wanted = (torch.arange(parameter.numel()) % _GRADIENT_MODULUS).view(parameter.shape)
        parts = wanted.chunk(dist.get_world_size())
        own = parts[dist.get_rank()] if dist.get_rank() < len(parts) else wanted[:0]
        here = sharded.grad.to_local()
        wrong += int((~torch.isclose(here, own + mean_of_ranks, rtol=1e-5, atol=1e-4)).sum())
    return wrong


def step(net: Bare) -> None:
    """Forward and backward, from no gradients on."""
    net.zero_grad(set_to_none=True)
    torch.autograd.backward(net(torch.ones(1)))
