"""Which switches of a job a capture shows, and whether they are below another one.

A switch is known by its address: contributions go to it, results come from it. In a tree all
switches of a job have its number, and its slots by the same indices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ina.pcap.ends import Address, asker, destination, source
from ina.pcap.packets import Packet
from ina.pcap.paths import ROOT_BITS, root_bits, whose
from ina.protocol.codec import Header
from ina.protocol.spec import MAX_WORKERS, PATH_BITS, Flag, Kind, index_bits


@dataclass
class _Seen:
    """Of one switch."""

    children: dict[int, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    """By epoch: the index of a child and a path that leads through it, of its packets."""
    root_bits: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """By epoch: in results that it sent, how many bits of a path are the index at the root."""
    has_children: bool = False
    has_switches: bool = False
    """Below it."""
    parents: set[Address] = field(default_factory=set)

    def is_below(self, *, results_tell: bool) -> bool:
        """Whether a path has the index of its child not at the root's place, but at one behind it.

        ``results_tell``: how many bits of a path the root's index takes. Where paths say it neither
        way, as of packets that were made by hand, nobody is above.
        """
        at_root, behind = True, True
        for epoch, paths in self.children.items():
            told = self.root_bits.get(epoch) if results_tell else None
            at_root &= any(_leads(paths, 0, bits) for bits in told or ROOT_BITS)
            behind &= any(
                _leads(paths, above, bits)
                for above in range(1, PATH_BITS)
                for bits in range(1, min(index_bits(MAX_WORKERS), PATH_BITS - above) + 1)
            )
        return behind and not at_root


def _leads(paths: set[tuple[int, int]], above: int, bits: int) -> bool:
    """Whether all begin alike, with so many bits ``above``, and go on with the child's index."""
    (_, first) = next(iter(paths))
    begins = first >> PATH_BITS - above
    return all(
        it >> bits == 0 and path >> PATH_BITS - above - bits == begins << bits | it
        for it, path in paths
    )


class Switches:
    """Learns from all packets of a job."""

    def __init__(self) -> None:
        self._seen: dict[Address, _Seen] = {}
        self._names_workers = False
        """Contributors are workers at every level: its slots are shared with other jobs."""

    def learn(self, packet: Packet, header: Header) -> None:
        """A packet that is whole, and the job's."""
        if header.kind is Kind.CONTRIBUTION:
            self._is_child(source(packet), destination(packet), header)
        elif header.kind is Kind.RESULT:
            seen = self._of(source(packet))
            seen.has_children = True
            seen.root_bits[header.epoch].add(root_bits(header))
            if header.flags & Flag.REPLAY and not header.is_to_all:
                seen.children[header.epoch].add((asker(packet, header), whose(header)))
            # Else it goes to a worker; which of both, the contributions tell.
            self._of(destination(packet)).parents.add(source(packet))

    def _is_child(self, child: Address, switch: Address, header: Header) -> None:
        seen = self._of(switch)
        seen.has_children = True
        seen.children[header.epoch].add((header.worker, whose(header)))
        self._names_workers |= header.contributors != 1 << header.worker
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
        return bool(seen.parents) or seen.is_below(results_tell=not self._names_workers)

    def parents(self, switch: Address) -> list[Address]:
        """The one that it sends its sums to, if the capture shows that."""
        return sorted(self._seen[switch].parents)

    def is_in_tree(self, switch: Address) -> bool:
        """Whether it is one of several, as far as the capture tells."""
        return self.has_parent(switch) or self._seen[switch].has_switches

    def depth(self, switch: Address) -> int:
        """How many switches are above it, at least; 0: none."""
        above, depth = {switch}, int(self.has_parent(switch))
        while parents := {it for each in above for it in self._seen[each].parents} - above:
            above |= parents
            depth += any(self.has_parent(it) for it in parents)
        return depth
