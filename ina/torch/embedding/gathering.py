"""What each rank of a group says to all."""

from __future__ import annotations

from typing import TypeVar

import torch.distributed as dist

T = TypeVar("T")


def gathered(said: T, hosts: int, group: dist.ProcessGroup | None) -> list[T]:
    """What each rank says, by rank. Collective."""
    all_said = [said] * hosts
    if hosts > 1:
        dist.all_gather_object(all_said, said, group=group)
    return all_said
