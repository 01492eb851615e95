"""Tickets of jobs that one switch sums, without a controller."""

from __future__ import annotations

from typing import Any

from ina.host.ticket import Ticket
from ina.host.trees import one_switch


def direct_ticket(
    name: str, job: int, epoch: int, rank: int, world_size: int, *at: Any, **more: Any
) -> Ticket:
    """``at``: slots, values a packet, and the switch's IPv4 address and UDP port."""
    slots, values, *address = at
    trees = one_switch(job, rank, world_size, slots, (address[0], address[1]))
    return Ticket(name, epoch, rank, world_size, slots, values, trees, **more)
