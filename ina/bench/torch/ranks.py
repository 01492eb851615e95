"""What ranks of a benchmark tell each other beside what is measured, over Gloo."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import torch
import torch.distributed as dist

from ina.bench.collective_kinds import LinkBytes


class Ranks:
    """All of the job's."""

    def __init__(self) -> None:
        self.gloo: Any = dist.new_group(backend="gloo")

    def meet(self) -> None:
        """All come, then all go on."""
        dist.barrier(group=self.gloo)

    def most(self, here: float) -> float:
        """The largest of all ranks'."""
        said = torch.tensor([here], dtype=torch.float64)
        dist.all_reduce(said, dist.ReduceOp.MAX, group=self.gloo)
        return said.item()

    def mean(self, here: float) -> float:
        """Of all ranks'."""
        said = torch.tensor([here], dtype=torch.float64)
        dist.all_reduce(said, group=self.gloo)
        return said.item() / dist.get_world_size()

    def total(self, here: int) -> int:
        """The sum of all ranks'."""
        said = torch.tensor([here])
        dist.all_reduce(said, group=self.gloo)
        return int(said.item())

    def first(self, here: int) -> int:
        """Rank 0's."""
        said = torch.tensor([here])
        dist.broadcast(said, 0, group=self.gloo)
        return int(said.item())

    def places(self, here: tuple[str, int]) -> list[tuple[str, int]]:
        """All ranks' IPv4 addresses and ports, by rank."""
        host, port = here
        said = torch.tensor([int(ip_address(host)), port])
        found = [torch.zeros_like(said) for _ in range(dist.get_world_size())]
        dist.all_gather(found, said, group=self.gloo)
        return [(str(ip_address(int(of[0]))), int(of[1])) for of in found]

    def each(self, here: LinkBytes) -> list[LinkBytes]:
        """All ranks', by rank."""
        said = torch.tensor([here.sent, here.received], dtype=torch.float64)
        found = [torch.zeros_like(said) for _ in range(dist.get_world_size())]
        dist.all_gather(found, said, group=self.gloo)
        return [LinkBytes(*pair.tolist()) for pair in found]
