"""What a switch holds, in terms of its P4 program: the same whatever protocol carries it.

Names are those of the P4 program. Every value can be written to JSON and read back.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import NamedTuple, TypeAlias

import msgspec

MatchValue: TypeAlias = int | str
"""A number matches exactly. Text: "10.1.0.0/16" (LPM), "0x800/&0xff00" (ternary), "1...5" (range);
what names no bits (a ternary 0/&0) is left out of the match."""
Match: TypeAlias = tuple[tuple[str, MatchValue], ...]


def lpm_text(value: int, prefix_bits: int, *, is_ipv4: bool) -> str:
    """A match of a longest prefix. ``is_ipv4``: shown as an address."""
    return f"{IPv4Address(value) if is_ipv4 else value}/{prefix_bits}"


class Entry(msgspec.Struct, frozen=True, tag="entry"):
    """A table entry."""

    table: str
    match: Match
    action: str
    """Empty, where it was read: the switch does not say."""
    params: tuple[tuple[str, int], ...] = ()
    priority: int = 0
    """Of ternary and range matches: the larger wins."""

    def exact(self, field: str) -> int:
        """The number that a field matches. Raises KeyError: it has no such field."""
        value = dict(self.match)[field]
        assert isinstance(value, int), f"{self.table}: {field} matches {value}, which is no number"
        return value

    def param(self, name: str) -> int:
        """A parameter of its action. Raises KeyError: it has none of this name."""
        return dict(self.params)[name]


class DefaultAction(msgspec.Struct, frozen=True, tag="default"):
    """What a table does where no entry matches. Deleting it restores the program's own."""

    table: str
    action: str
    params: tuple[tuple[str, int], ...] = ()


class Group(msgspec.Struct, frozen=True, tag="group"):
    """A multicast group: copies as (egress port, replica instance), in the order that they leave.

    A switch may send them in another order, and tell of them in another.
    """

    number: int
    replicas: tuple[tuple[int, int], ...]


class CloneSession(msgspec.Struct, frozen=True, tag="clone"):
    """Where clones of a packet go: as a group."""

    number: int
    replicas: tuple[tuple[int, int], ...]


Item: TypeAlias = Entry | Group
"""What a controller writes of jobs."""
AnyItem: TypeAlias = Item | DefaultAction | CloneSession


class Counter(msgspec.Struct, frozen=True, tag="counter"):
    """One cell of an indirect counter."""

    name: str
    index: int


class EntryCounter(msgspec.Struct, frozen=True, tag="entry_counter"):
    """The direct counter of a table's entry."""

    table: str
    match: Match


CounterRef: TypeAlias = Counter | EntryCounter


class Count(NamedTuple):
    """What a counter has seen; bytes are those of whole frames."""

    packets: int
    bytes: int


class PortState(msgspec.Struct, frozen=True):
    """A port as the switch has it set."""

    number: int
    name: str
    """On the front panel; empty: unknown."""
    speed: str
    fec: str
    autoneg: str
    loopback: str
    enabled: bool
    up: bool


class PortDrop(msgspec.Struct, frozen=True):
    """Packets that a port dropped for one reason, since the switch began."""

    port: int
    reason: str
    """As the switch calls it."""
    packets: int
