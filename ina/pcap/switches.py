"""Which switches of a job a capture shows, and whether they are below another one.

A switch is known by its address: contributions go to it, results come from it. In a tree all
switches of a job have its number, and its slots by the same indices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ina.pcap.ends import Address, asker, destination, source
from ina.pcap.packets import Packet
from ina.pcap.paths import path_indices
from ina.protocol.codec import Header
from ina.protocol.spec import MAX_LEVELS, Flag, Kind


@dataclass
class _Seen:
    """Of one switch."""

    depths: set[int] = field(default_factory=lambda: set(range(MAX_LEVELS)))
    """At which it may be, by the paths and indices of its children's packets; 0: the root."""
    has_children: bool = False
    has_switches: bool = False
    """Below it."""
    parents: set[Address] = field(default_factory=set)

    def narrow(self, header: Header, child: int) -> None:
        """The path leads through the child, so it has its index where the switch's children are."""
        indices = path_indices(header.path)
        self.depths &= {depth for depth, index in enumerate(indices) if index == child}


class Switches:
    """Learns from all packets of a job."""

    def __init__(self) -> None:
        self._seen: dict[Address, _Seen] = {}

    def learn(self, packet: Packet, header: Header) -> None:
        """A packet that is whole, and the job's."""
        if header.kind is Kind.CONTRIBUTION:
            self._is_child(source(packet), destination(packet), header)
        elif header.kind is Kind.RESULT:
            seen = self._of(source(packet))
            seen.has_children = True
            if header.flags & Flag.REPLAY and not header.is_to_all:
                seen.narrow(header, asker(packet, header))
            # Else it goes to a worker; which of both, the contributions tell.
            self._of(destination(packet)).parents.add(source(packet))

    def _is_child(self, child: Address, switch: Address, header: Header) -> None:
        seen = self._of(switch)
        seen.has_children = True
        seen.narrow(header, header.worker)
        if header.level:
            seen.has_switches = True
            self._of(child).parents.add(switch)

    def _of(self, address: Address) -> _Seen:
        return self._seen.setdefault(address, _Seen())

    def with_children(self) -> Iterable[Address]:
        """Those of which the capture has packets of their children or to them."""
        return sorted(address for address, seen in self._seen.items() if seen.has_children)

    def has_parent(self, switch: Address) -> bool:
        """Whether it sends its sums up, as far as the capture tells."""
        seen = self._seen[switch]
        return bool(seen.parents) or (bool(seen.depths) and min(seen.depths) > 0)

    def parents(self, switch: Address) -> list[Address]:
        """The one that it sends its sums to, if the capture shows that."""
        return sorted(self._seen[switch].parents)

    def is_in_tree(self, switch: Address) -> bool:
        """Whether it is one of several, as far as the capture tells."""
        return self.has_parent(switch) or self._seen[switch].has_switches

    def path_depth(self, switch: Address, packet: Packet, header: Header) -> int:
        """How many indices the path of a packet from or to a switch has, at least."""
        if header.kind is Kind.RESULT:  # its level is that of the root's child
            return max(self.depth(switch), header.level) + 1
        is_own = source(packet) == switch
        return min(self.depth(switch) + header.level + (0 if is_own else 1), MAX_LEVELS)

    def depth(self, switch: Address) -> int:
        """How many switches are above it, at least; 0: none."""
        least = 1 if self.has_parent(switch) else 0
        return min((it for it in self._seen[switch].depths if it >= least), default=least)
