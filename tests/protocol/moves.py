"""One packet at one switch: what it does to its slot, and what leaves. A model's packets, arrivals
at workers and states of slots are numbers, and sets of packets are bits of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from ina.protocol.codec import Header, encode
from ina.protocol.slot_model import Slot
from ina.protocol.spec import Flag
from tests.protocol.search import Numbered, Violation
from tests.protocol.tree_fabric import WORKER
from tests.protocol.tree_traffic import Packet, Traffic

T = TypeVar("T")
P = TypeVar("P", bound=Packet)

SlotState = tuple[Any, ...]
"""What a slot holds, field by field."""

Moved = tuple[int, tuple[int, ...]]
"""The state of the slot after a packet, and what leaves, by number."""


class Arrival(NamedTuple):
    """A result at a worker, which may get it at any moment."""

    job: int
    worker: int
    mapping: int  # of the job; of a tree's: 0, or 1 after the restart
    chunk: int


class Moves(Generic[P]):
    """Of all packets of a model. ``told``: what a switch has been told, in a number.

    ``old``: how the packet finds its slot where a slot may be found in two ways.
    """

    def __init__(self, value_count: int) -> None:
        self.known: Numbered[P | Arrival] = Numbered()
        self.cells: list[int] = []  # of each packet: its slot, by number; -1: an arrival
        self.masks: list[int] = []  # of each: a bit for it, and for those like it
        self.relevant: list[int] = []  # by slot: a bit for each packet for it
        self.switch_of: list[int] = []  # by slot
        self.arrivals: list[int] = []
        self._payloads: dict[int, bytes] = {}
        self.slot_states: Numbered[SlotState] = Numbered()
        self._moved: dict[tuple[int, int, int, bool], Moved] = {}
        self.power_on = self.slot_states.number(frozen(Slot(values=(0,) * value_count)))

    def add_slot(self, switch: int) -> int:
        """Returns its number."""
        self.relevant.append(0)
        self.switch_of.append(switch)
        return len(self.relevant) - 1

    def cell(self, packet: P) -> int:
        """The slot that a packet is for."""
        raise NotImplementedError

    def number(self, it: P | Arrival) -> int:
        """Of a packet or an arrival, which counts as known from now on."""
        number = self.known.number(it)
        if number == len(self.cells):
            cell = -1
            if isinstance(it, Arrival):
                self.arrivals.append(number)
            else:
                cell = self.cell(it)
                self.relevant[cell] |= 1 << number
            self.cells.append(cell)
            self.masks.append(1 << number)
        return number

    def packet(self, number: int) -> P:
        it = self.known[number]
        assert not isinstance(it, Arrival)
        return it

    def payload(self, number: int) -> bytes:
        """The packet as a switch gets it."""
        if number not in self._payloads:
            packet = self.packet(number)
            self._payloads[number] = encode(packet.header, packet.values)
        return self._payloads[number]

    def mask(self, numbers: Iterable[int]) -> int:
        """Of packets, and of those like them."""
        mask = 0
        for number in numbers:
            mask |= self.masks[number]
        return mask

    # -- moves --

    def ways(self, number: int, state: int, told: int) -> tuple[bool, ...]:
        """``old``, for each way in which the packet may find its slot; (): it is not admitted."""
        return (False,)

    def move(self, number: int, state: int, told: int, old: bool = False) -> Moved:
        """The state of the slot after a packet, and what leaves. Checks what does."""
        key = (number, state, told, old)
        moved = self._moved.get(key)
        if moved is None:
            try:
                moved = self._moved[key] = self.receive(*key)
            except Violation as violation:
                raise Violation(f"{violation}, when {self.known[number]} arrives") from None
        return moved

    def receive(self, number: int, before: int, told: int, old: bool) -> Moved:
        """What the switch makes of it."""
        raise NotImplementedError

    # -- promises --

    def check_result(
        self,
        said_by: tuple[Traffic, int],
        at: Arrival,
        packet: P,
        got: Header,
        values: tuple[int, ...],
    ) -> None:
        """It has each worker's part once, and is what the worker may take it for.

        ``said_by``: whose it is, in which of the traffic's epochs; ``packet``: what has asked."""
        traffic, epoch = said_by
        name = f"the result of epoch {epoch} chunk {at.chunk} of job {at.job}"
        said, whole = traffic.whole(epoch, at.chunk)
        if values != whole:
            raise Violation(f"{name} holds {[f'{value:#x}' for value in values]}")
        said = replace(said, worker=traffic.fabric.child(WORKER + at.worker), path=packet.asked_by)
        if got.flags & Flag.REPLAY and at.worker != packet.asker:
            raise Violation(f"worker {at.worker} got what worker {packet.asker} asked for")
        if replace(got, flags=got.flags & ~Flag.REPLAY, level=0) != said:
            raise Violation(f"{name} says {got}, not {said}")

    def check_way_back(
        self, leaving: tuple[int, ...], told: int, expected: list[int], what: str
    ) -> None:
        """What the root sends reaches the workers that it should, where all are told the same."""
        reached = sorted(self._reached(leaving, told))
        if reached != expected:
            raise Violation(f"{what} reaches the workers {reached}, not {expected}")

    def _reached(self, leaving: tuple[int, ...], told: int) -> Iterator[int]:
        for number in leaving:
            it = self.known[number]
            if isinstance(it, Arrival):
                yield it.worker
            else:
                yield from self._reached(self.move(number, self.power_on, told)[1], told)


def frozen(slot: Slot, **instead: object) -> SlotState:
    """What it holds; ``instead`` of some fields something else."""
    return tuple((vars(slot) | instead).values())


def numbers_of(mask: int) -> Iterator[int]:
    """Of the bits in it."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def put(row: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    """The row with another value at an index."""
    return (*row[:index], value, *row[index + 1 :])
