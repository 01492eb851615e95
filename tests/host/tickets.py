"""Tickets of jobs that one switch sums, without a controller."""

from __future__ import annotations

from typing import Any

from ina.host.ticket import Ticket
from ina.host.trees import one_switch


def direct_ticket(
    name: str, job: int, epoch: int, rank: int, world_size: int, slots: int, values: int,
    *address: Any, **more: Any,
) -> Ticket:  # fmt: skip
    """``address``: the switch's, IPv4 address and UDP port."""
    trees = one_switch(job, rank, world_size, slots, address)
    return Ticket(name, epoch, rank, world_size, slots, values, trees, **more)
