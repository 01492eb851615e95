"""A device under test: a control plane to write its state, ports to send frames through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from types import TracebackType
from typing import Protocol

from ina.p4 import compiled
from ina.p4.catalogue import BMV2_MOST_GROWTH_BYTES
from ina.tables.entities import ProgramFiles
from ina.tables.values import AnyItem, Count, CounterRef, Group
from ina.testing.frames import PortFrame


class Ability(Enum):
    """What a case may need and not every device has. Who has GROWTH has SOME_GROWTH."""

    ANY_FRAME = "frames of any length"  # a network card sends no frame below 14 bytes
    STEADY_QUEUES = "queues whose depth does not depend on timing"
    CPU_PORT = "packet-in and packet-out"
    GROWTH = "room behind each frame for values that it came without"
    SOME_GROWTH = f"room for {BMV2_MOST_GROWTH_BYTES} bytes behind each frame"


def growth_of(growth_bytes: int) -> Ability:
    """What a device needs whose frames grow by so much."""
    return Ability.SOME_GROWTH if growth_bytes <= BMV2_MOST_GROWTH_BYTES else Ability.GROWTH


class Device(Protocol):
    """One switch. ``with`` starts and stops it; nothing of it is left behind."""

    name: str
    mode: str
    """Of the program that it runs: "pool", or "shared", which has all that pool has."""
    abilities: frozenset[Ability]
    ports: range
    """Port numbers that frames can be sent to and seen at."""
    frame_bytes: range
    """Lengths of frames that its ports can carry."""

    def reset(self, values: int) -> None:
        """Loads its program with ``values`` values a packet; everything is as at power-on."""
        ...

    def insert(self, items: Sequence[AnyItem]) -> None:
        """Writes entries, default actions and groups, in order."""
        ...

    def delete(self, items: Sequence[AnyItem]) -> None:
        """Takes them off again, in order."""
        ...

    def modify(self, groups: Sequence[Group]) -> None:
        """Gives groups that are there other copies, in order."""
        ...

    def process(self, frames: Sequence[PortFrame]) -> list[PortFrame]:
        """Sends frames in, strictly one after the other; returns all that leave.

        The order of what leaves holds for each port, not between ports.
        """
        ...

    def counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """Reads counters: packets and bytes of each."""
        ...

    def __enter__(self) -> Device: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


ProgramOf = Callable[[int], ProgramFiles]
"""What is loaded for a number of values a packet."""


def pool_program(values: int) -> ProgramFiles:
    """The checked-in build of mode pool. Raises UnknownBuildError."""
    return compiled(values)


def program_of_mode(mode: str) -> ProgramOf:
    """The checked-in builds of a mode's program."""
    return lambda values: compiled(values, mode)


def by_port(frames: Sequence[PortFrame]) -> dict[int, list[bytes]]:
    """What left, port by port: this is what two devices must agree on."""
    sorted_frames: dict[int, list[bytes]] = {}
    for port, data in frames:
        sorted_frames.setdefault(port, []).append(data)
    return sorted_frames
