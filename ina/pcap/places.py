"""Which captured frames are one packet: a link has two ends, and a capture at each tells of it.

Of two captures of one place the same packet is two: it was sent, or copied, twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from ina.pcap.frame import CapturedFrame
from ina.pcap.packets import Packet
from ina.protocol.codec import Header

_ONE_WAY_NS = 1_000_000_000
"""Between two places, at most: a link's delay, and how far apart their clocks are."""
_LINUX_SLL2 = 276


@dataclass
class Sighting:
    """One packet, as the first place has it, and the frames of the others."""

    packet: Packet
    header: Header
    elsewhere: list[CapturedFrame] = field(default_factory=list)
    places: set[Hashable] = field(default_factory=set)


def sightings(packets: Iterable[tuple[Packet, Header]]) -> list[Sighting]:
    """Of packets in the order of their times; each is told once, however many places saw it."""
    found: list[Sighting] = []
    alike: dict[Hashable, list[Sighting]] = defaultdict(list)
    for packet, header in packets:
        sent, place = packet.datagram, place_of(packet.frame)
        same = alike[sent.src, sent.src_port, sent.dst, sent.dst_port, header, packet.problem]
        known = _seen_elsewhere(same, place, packet.time_ns)
        if known is None:
            known = Sighting(packet, header)
            same.append(known)
            found.append(known)
        else:
            known.elsewhere.append(packet.frame)
        known.places.add(place)
    return found


def _seen_elsewhere(same: list[Sighting], place: Hashable, time_ns: int) -> Sighting | None:
    """The newest that this place has not had: what was sent before it has passed here, too."""
    for one in reversed(same):
        if time_ns - one.packet.time_ns > _ONE_WAY_NS:
            return None
        if place not in one.places:
            return one
    return None


def place_of(frame: CapturedFrame) -> Hashable:
    """Where it was captured: a file, of several interfaces one of them."""
    # The only link type that says so itself: Linux's "any", in its second form.
    index = frame.data[4:8] if frame.link_type == _LINUX_SLL2 else b""
    return frame.source, index
