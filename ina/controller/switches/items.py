"""What a switch holds, in terms of the P4 program: the same whatever protocol carries it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

MatchValue: TypeAlias = int | str
"""A number matches exactly; text, which is only read, is any other match: ``10.1.0.0/16``."""


@dataclass(frozen=True)
class Entry:
    """A table entry with exact matches; names are those of the P4 program."""

    table: str
    match: tuple[tuple[str, int], ...]
    action: str
    params: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Group:
    """A multicast group: copies as (egress port, replica instance)."""

    number: int
    replicas: tuple[tuple[int, int], ...]


Item: TypeAlias = Entry | Group


@dataclass(frozen=True)
class ReadEntry:
    """An entry of any table, as it was read; names are those of the P4 program."""

    table: str
    match: Mapping[str, MatchValue]
    action: str
    """Empty: the switch does not say."""
    params: Mapping[str, int]


@dataclass(frozen=True)
class Cell:
    """One cell of an indirect counter."""

    counter: str
    index: int


@dataclass(frozen=True)
class Count:
    """What a counter has seen; bytes are those of whole frames."""

    packets: int
    bytes: int


@dataclass(frozen=True)
class PortState:
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
