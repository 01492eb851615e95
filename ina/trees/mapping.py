"""What a job's packets are sent by. Pure."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass

from ina.p4.names import DEFAULT_MODE
from ina.trees.forest import Forest
from ina.trees.slots import SlotRange, lanes_of
from ina.trees.tree import Node, Tree


@dataclass(eq=False)
class Mapping:
    """Which switches sum a job, with which of their slots, and what its packets carry for that."""

    epoch: int
    numbers: tuple[int, ...]
    """By tree, the header's job field: others than the former mapping's where the trees are."""
    forest: Forest
    memory: dict[str, SlotRange]
    """By switch. Of a mapping that goes, those that have still something of it."""
    window: int
    """Packets that a worker may have in flight."""
    host_first: int = 0
    """First slot on the nodes that are on hosts of workers: all of theirs are for the job."""
    mode: str = DEFAULT_MODE
    """Whether its slots are its own, or those of switches below an aggregator are shared."""

    @property
    def slots(self) -> int:
        """For packets to name, of all trees together."""
        return slots_of(self.forest, self.memory)

    @property
    def parts(self) -> tuple[Part, ...]:
        """By tree."""
        forest, slots, lanes = self.forest, self.slots, lanes_of(self.slots)
        found, first, before = [], 0, dict.fromkeys(self.memory, 0)
        for number, tree, share in zip(self.numbers, forest, forest.shares, strict=True):
            memory = {}
            for name in self.memory:
                if name in tree:
                    memory[name] = self._part(name, before[name], share)
                    before[name] += share
            its = slots * share // forest.parts
            on_hosts = SlotRange(self.host_first + slots * first // forest.parts, its, its)
            end = first + share
            row = range(lanes * first // forest.parts, lanes * end // forest.parts)
            found.append(Part(self.epoch, number, tree, memory, row, on_hosts))
            first = end
        return tuple(found)

    def _part(self, switch: str, before: int, share: int) -> SlotRange:
        """Of its slots there, those of a tree, beside those of trees ``before`` it."""
        taken, shares = self.memory[switch], self.forest.parts_at(switch)
        if share == shares:
            return taken
        is_shared = self.forest.shares_slots_of(switch)
        all_of_them = taken.reserved if is_shared else taken.slots
        first, end = all_of_them * before // shares, all_of_them * (before + share) // shares
        return SlotRange(taken.first + first, taken.slots * share // shares, end - first)

    def shares_slots_of(self, switch: str) -> bool:
        """Whether it needs no slots of its own there."""
        return self.forest.shares_slots_of(switch)

    def where_text(self) -> str:
        """``512..1023``, for people; of several switches with their names."""
        if len(self.memory) == 1:
            return next(self.slots_text(name) for name in self.memory)
        return ", ".join(f"{self.slots_text(name)} of {name}" for name in self.memory)

    def slots_text(self, switch: str) -> str:
        """Its slots at one of its switches, for people: of shared ones those that it may claim."""
        taken = self.memory[switch]
        if not self.shares_slots_of(switch):
            return f"{taken.first}..{taken.first + taken.slots - 1}"
        return f"{taken.first}..{taken.end - 1} shared" if taken.reserved else "none"


@dataclass(frozen=True, eq=False)
class Part:
    """What of a mapping is of one of its trees: to the data plane a job of its own."""

    epoch: int
    number: int
    """The header's job field."""
    tree: Tree
    memory: abc.Mapping[str, SlotRange]
    """By switch of the tree."""
    lanes: range
    """Of the job's, in a row."""
    on_hosts: SlotRange
    """Its slots on nodes on hosts of workers."""

    def memory_at(self, node: Node) -> SlotRange | None:
        """Its slots there, of shared ones those that it may claim; None: it has ended there."""
        return self.on_hosts if node.host is not None else self.memory.get(node.switch)


def slots_of(forest: Forest, memory: abc.Mapping[str, SlotRange]) -> int:
    """What :attr:`Mapping.slots` is."""
    return min((forest.slots_of(name, taken.slots) for name, taken in memory.items()), default=0)
