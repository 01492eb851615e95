"""Tickets of jobs that one switch sums, without a controller."""

from __future__ import annotations

from typing import Any

from ina.host.ticket import Ticket
from ina.host.trees import TreePlace, one_switch
from ina.p4.names import DEFAULT_MODE
from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2


def tree_message(place: TreePlace) -> pb2.Tree:
    """As a controller says it."""
    said = {name: value for name, value in vars(place).items() if name != "peer"}
    host, udp_port = place.peer.place
    return pb2.Tree(host=host, udp_port=udp_port, **said)


def direct_ticket(
    name: str, job: int, epoch: int, rank: int, world_size: int, *at: Any, **more: Any
) -> Ticket:
    """``at``: slots, values a packet, and the switch's IPv4 address and UDP port."""
    slots, values, *address = at
    switch, mode = Peer.at((address[0], address[1])), more.get("mode", DEFAULT_MODE)
    trees = one_switch(job, rank, world_size, slots, switch, mode=mode)
    return Ticket(name, epoch, rank, world_size, slots, values, trees, **more)
