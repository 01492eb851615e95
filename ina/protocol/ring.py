"""A worker's place in a ring of reliable connections, a lane each (mode ``transparent``)."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from ina.protocol.peer import Peer


@dataclass(frozen=True)
class Ring:
    """Whom it sends to, and who sends to it. Addresses are the ring's own."""

    own: IPv4Address
    next: IPv4Address
    previous: IPv4Address
    next_pairs: tuple[int, ...]
    """By lane: queue pairs of the next one's, that get what it sends."""
    previous_pairs: tuple[int, ...]
    """By lane: those of the one before that send to it, where it says what has come."""
    first_psn: int
    """Packet sequence number of the first packet of each connection."""


@dataclass(frozen=True)
class RingNode(Peer):
    """The switch that a ring passes; its packets name no address of that one's."""

    ring: Ring | None = None
