"""One packet at one switch, where slots are shared: what it does to the slot, and what leaves.

The switch is the reference model with the entries of a mapping. Packets and states of slots are
numbers. Whatever leaves is checked: a sum on its way up holds the parts of those whom it names and
says of them what is true; a result is whole; both go where they should.

Slots' stamps are not part of their states: any owner may have been unheard of for AGE or not, by
the truth or by a clock that has come round. So a packet finds a slot both ways (``old``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import NamedTuple

from ina.protocol.codec import encode
from ina.protocol.shared_model import STAMP_MODULUS
from ina.protocol.slot_model import STICKY_FLAGS, Slot, Tag
from ina.protocol.spec import NO_FLAGS, Flag, Kind
from ina.protocol.switch_model import EPOCH_BITS, Departure, SwitchModel
from tests.protocol.model_check import SlotState, Violation
from tests.protocol.shared_fabric import AGE_US
from tests.protocol.shared_tenants import Arrival, Mapping, Owned, Tenants
from tests.protocol.tree_fabric import WORKER

NOW_US = 3
"""AGE before it is where the clock came round."""

_STAMPS_US = {old: (NOW_US - AGE_US + (not old)) % STAMP_MODULUS for old in (False, True)}


class Place(NamedTuple):
    """A slot: of a switch's shared ones, or of one job's own there; ``owner`` -1: shared."""

    switch: int
    owner: int
    slot: int


@dataclass(frozen=True)
class Kinds:
    """The code under test, or with a fault."""

    switch: type[SwitchModel] = SwitchModel
    shared_slot: type[Slot] = Slot
    root_slot: type[Slot] = Slot
    own_slot: type[Slot] = Slot  # between the two, or of a host's node


class Moves:
    """Of all packets of some jobs. ``exact``: packets that differ by chance only are told apart;
    ``marks``: stamps of slots, and COLLISION and RESEND on the way up, are held to what they should
    be; sums do not depend on them.
    """

    def __init__(self, tenants: Tenants, kinds: Kinds, exact: bool, marks: bool) -> None:
        self.tenants, self.kinds, self.exact, self._marks = tenants, kinds, exact, marks
        self.known: list[Owned | Arrival] = []
        self.cells: list[int] = []  # of each packet: its slot's place, by number; -1: an arrival
        self.masks: list[int] = []  # of each: a bit for it, and for those like it
        self.places: list[Place] = []
        self.relevant: list[int] = []  # by place: a bit for each packet for it
        self.arrivals: dict[Arrival, int] = {}  # a bit of each
        self._numbers: dict[Owned | Arrival, int] = {}
        self._place_numbers: dict[Place, int] = {}
        self._states: list[SlotState] = []
        self._state_numbers: dict[SlotState, int] = {}
        self._moved: dict[tuple[int, int, bool], tuple[int, tuple[int, ...]]] = {}
        self.power_on = self._state(Slot(values=(0,) * self._value_count))
        for mapping in self.mappings:
            for switch in mapping.fabric.switches:
                for slot in range(mapping.arc.slots):
                    self._place_number(self._place(mapping, switch, slot))

    @property
    def _value_count(self) -> int:
        return self.tenants.mappings[0].traffic.value_count

    @cached_property
    def _switches(self) -> dict[tuple[int, int], SwitchModel]:
        """Each as it is programmed for each mapping; states of slots are put into it."""
        switches = {}
        slots = 1 + max(max(it.arc.first + it.arc.window, it.arc.slots) for it in self.mappings)
        for mapping in self.mappings:
            for place in mapping.fabric.switches:
                switch = self.kinds.switch(slots, self._value_count)
                switch.install(mapping.entries(place))
                switch.now_us = NOW_US
                switches[place, mapping.index] = switch
        return switches

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        return self.tenants.mappings

    def mapping(self, number: int) -> Mapping:
        """Whose a packet is."""
        it = self.known[number]
        assert isinstance(it, Owned)
        return self.mappings[it.mapping]

    # -- numbers --

    def number(self, it: Owned | Arrival) -> int:
        """Of a packet or an arrival, which counts as known from now on."""
        if isinstance(it, Owned):
            it = self._plain(it)
        if it not in self._numbers:
            self._number(it)
            if isinstance(it, Owned) and not self.exact:
                alike = [self._number(other) for other in self._alike(it)]
                mask = _mask(alike)
                for number in alike:
                    self.masks[number] |= mask
        return self._numbers[it]

    def _number(self, it: Owned | Arrival) -> int:
        if it not in self._numbers:
            self._numbers[it] = number = len(self.known)
            cell = -1
            if isinstance(it, Owned):
                place = self._place(self.mappings[it.mapping], it.at, it.header.slot)
                cell = self._place_number(place)
                self.relevant[cell] |= 1 << number
            else:
                self.arrivals[it] = 1 << number
            self.known.append(it)
            self.cells.append(cell)
            self.masks.append(1 << number)
        return self._numbers[it]

    def _place_number(self, place: Place) -> int:
        if place not in self._place_numbers:
            self._place_numbers[place] = len(self.places)
            self.places.append(place)
            self.relevant.append(0)
        return self._place_numbers[place]

    def _place(self, mapping: Mapping, switch: int, slot: int) -> Place:
        if not mapping.fabric.is_shared(switch):
            # A job that starts again has its slots again; one that moves has others there.
            is_resized = self.tenants.jobs[mapping.job].change == "resize"
            owner = mapping if is_resized else self.tenants.of[mapping.job][0]
            return Place(switch, owner.index, slot)
        lane = slot % mapping.arc.window
        has_slot = lane < mapping.arc.claimable
        return Place(switch, -1, mapping.arc.first + lane if has_slot else -1)

    def _plain(self, packet: Owned) -> Owned:
        """Without what nobody looks at."""
        header = packet.header
        flags, copy = header.flags & ~Flag.COLLISION, header.copy
        if packet.at == 0 and header.kind is Kind.CONTRIBUTION:
            flags, copy = flags & ~Flag.RESEND, 0
        if (flags, copy) == (header.flags, header.copy):
            return packet
        return replace(packet, header=replace(header, flags=flags, copy=copy))

    def _alike(self, packet: Owned) -> Iterator[Owned]:
        """Sums of the same parts, as other packets would have brought them about: whoever has
        one may have any of them. So more may happen than can, and there are fewer states."""
        header, fabric = packet.header, self.mappings[packet.mapping].fabric
        if header.kind is not Kind.CONTRIBUTION or packet.asker not in fabric.ranks:
            return
        if fabric.below(packet.at)[header.worker] >= WORKER:
            return
        again = [(header.flags, header.copy)]
        if packet.at and not self._is_unit(packet):
            plain = header.flags & ~Flag.RESEND
            again = [(plain, 0), (plain | Flag.RESEND, 1)]
        for rank in fabric.ranks_of(self.bits(packet)):
            path = fabric.tree.path(rank)
            for flags, copy in again:
                said = replace(header, path=path, flags=flags, copy=copy)
                yield replace(packet, header=said, asker=rank, asked_by=path)

    def _is_unit(self, packet: Owned) -> bool:
        """Whether it comes from a switch whose slots are its job's own, or from a worker."""
        fabric = self.mappings[packet.mapping].fabric
        child = fabric.below(packet.at)[packet.header.worker]
        return child >= WORKER or not fabric.is_shared(child)

    def bits(self, packet: Owned) -> int:
        """Of the units whose parts it holds."""
        if not self._is_unit(packet):
            return packet.header.contributors
        fabric = self.mappings[packet.mapping].fabric
        return fabric.bits(fabric.below(packet.at)[packet.header.worker])

    # -- moves --

    def may_find_old(self, number: int, state: int) -> bool:
        """Whether it makes a difference how long the owner of the slot has been silent."""
        it = self.known[number]
        assert isinstance(it, Owned)
        place = self.places[self.cells[number]]
        return (
            place.owner == -1
            and place.slot >= 0
            and it.header.kind is Kind.CONTRIBUTION
            and not it.is_resend
            and self._states[state][0].epoch != self.mapping(number).traffic.first_epoch
        )

    def move(self, number: int, state: int, old: bool = False) -> tuple[int, tuple[int, ...]]:
        """The state of the slot after a packet, and what leaves, by number."""
        key = (number, state, old)
        if key not in self._moved:
            try:
                self._moved[key] = self._move(*key)
            except Violation as violation:
                raise Violation(f"{violation}, when {self.known[number]} arrives") from None
        return self._moved[key]

    def check_refused(self, number: int, mapping: Mapping) -> None:
        """A switch that has been told of another mapping of the job drops the packet."""
        packet = self.known[number]
        assert isinstance(packet, Owned)
        switch = self._switches[packet.at, mapping.index]
        switch.slots.clear()
        if switch.receive(packet.sender, encode(packet.header, packet.values)) or switch.slots:
            raise Violation(f"{packet} is admitted by mapping {mapping.index}")

    def _move(self, number: int, before: int, old: bool) -> tuple[int, tuple[int, ...]]:
        packet, place = self.known[number], self.places[self.cells[number]]
        assert isinstance(packet, Owned)
        switch = self._switches[packet.at, packet.mapping]
        switch.slots.clear()
        index = {place.slot} - {-1}
        if index:
            switch.slots[place.slot] = self._slot_type(place)(*self._states[before])
            switch.slots[place.slot].stamp_us = _STAMPS_US[old]
        departures = switch.receive(packet.sender, encode(packet.header, packet.values))
        if switch.slots.keys() != index:
            raise Violation(f"it touched the slots {set(switch.slots)}")
        after = before
        if index:
            slot = switch.slots[place.slot]
            after = self._state(slot)
            if place.owner == -1 and self._marks:
                self._check_stamp(packet, self._states[before], slot, old)
        leaving = tuple(self._leave(packet, it, before, old) for it in departures)
        if packet.at == 0 and leaving:
            self._check_way_back(packet, leaving, is_new=after != before)
        return after, leaving

    def slot_state(self, number: int) -> SlotState:
        """What a slot in the state of this number holds."""
        return self._states[number]

    def _slot_type(self, place: Place) -> type[Slot]:
        if place.owner == -1:
            return self.kinds.shared_slot
        return self.kinds.own_slot if place.switch else self.kinds.root_slot

    def _state(self, slot: Slot) -> int:
        owner, *rest, _ = astuple(slot)
        state = (Tag(*owner), *rest, 0)
        if state not in self._state_numbers:
            self._state_numbers[state] = len(self._states)
            self._states.append(state)
        return self._state_numbers[state]

    def _check_stamp(self, packet: Owned, before: SlotState, slot: Slot, old: bool) -> None:
        """Who is heard of keeps a slot for AGE, a resend and others keep nothing, and a result
        leaves it to anybody; what is old is whoever's comes."""
        epoch = self.mappings[packet.mapping].traffic.first_epoch
        is_own, stamp_us = before[0].epoch == epoch, _STAMPS_US[old]
        if packet.asker not in self.mappings[packet.mapping].fabric.ranks:
            pass  # a stranger's, which is dropped
        elif packet.header.kind is Kind.RESULT:
            if is_own:
                stamp_us = _STAMPS_US[True]
        elif not packet.is_resend:
            if old and not is_own and slot.owner != Tag(epoch, packet.header.seq):
                raise Violation("a slot is pinned: its owner is silent, and keeps it")
            if is_own or old:
                stamp_us = NOW_US
        if slot.stamp_us != stamp_us:
            raise Violation(f"stamp {slot.stamp_us} and not {stamp_us}")

    def _leave(self, packet: Owned, departure: Departure, before: int, old: bool) -> int:
        mapping, header = self.mappings[packet.mapping], departure.header
        if header.epoch != mapping.traffic.first_epoch % (1 << EPOCH_BITS):
            raise Violation(f"a switch of another epoch sends {header}")
        taken = mapping.fabric.carry(packet.at, departure.to)
        if taken is None:
            raise Violation(f"nobody is where {departure} goes")
        at, sender = taken
        if at >= WORKER:
            return self.number(self._result(at - WORKER, departure, packet))
        if header.kind is Kind.CONTRIBUTION:
            self._check_sum(packet, departure, before, old)
        onward = replace(packet, at=at, sender=sender, header=header, values=departure.values)
        return self.number(onward)

    def _check_sum(self, packet: Owned, departure: Departure, before: int, old: bool) -> None:
        """It holds the parts of those whom it names, each once, and says of them what is true."""
        mapping, at, got = self.mappings[packet.mapping], packet.at, departure.header
        fabric, bits = mapping.fabric, got.contributors
        marks = NO_FLAGS
        if fabric.is_shared(at):
            marks = packet.header.flags & Flag.RESEND
            if self.may_find_old(self.number(packet), before) and not old:
                marks |= Flag.COLLISION
        else:
            bits = fabric.bits(at)
        if not bits or bits & ~fabric.bits(at):
            raise Violation(f"a sum names {bits:#b}")
        chunk = mapping.chunk(got.seq)
        said, values = mapping.traffic.sum_of(0, chunk, fabric.ranks_of(bits))
        if departure.values != values:
            held = [f"{value:#x}" for value in departure.values]
            raise Violation(f"a sum of chunk {chunk} that names {bits:#b} holds {held}")
        said = replace(
            said,
            flags=said.flags & STICKY_FLAGS | marks,
            worker=fabric.child(at),
            contributors=bits if fabric.is_shared(at) else 1 << fabric.child(at),
            level=fabric.tree.level(fabric.tree[str(at)]),
            path=packet.asked_by,
            copy=packet.header.copy,
        )
        if not self._marks:
            unmarked = ~(Flag.RESEND | Flag.COLLISION)
            got = replace(got, flags=got.flags & unmarked)
            said = replace(said, flags=said.flags & unmarked)
        if got != said:
            raise Violation(f"a sum of chunk {chunk} says {got}, not {said}")

    def _result(self, worker: int, departure: Departure, packet: Owned) -> Arrival:
        """It has each worker's part once, and is what the worker may take it for."""
        mapping, got = self.mappings[packet.mapping], departure.header
        chunk = mapping.chunk(got.seq)
        said, values = mapping.traffic.whole(0, chunk)
        if departure.values != values:
            held = [f"{value:#x}" for value in departure.values]
            raise Violation(f"the result of mapping {mapping.index} chunk {chunk} holds {held}")
        said = replace(said, worker=mapping.fabric.child(WORKER + worker), path=packet.asked_by)
        if got.flags & Flag.REPLAY and worker != packet.asker:
            raise Violation(f"worker {worker} got what worker {packet.asker} asked for")
        if replace(got, flags=got.flags & ~Flag.REPLAY, level=0, copy=0) != said:
            raise Violation(f"the result of chunk {chunk} says {got}, not {said}")
        return Arrival(mapping.job, worker, mapping.number, chunk)

    def _check_way_back(self, packet: Owned, leaving: tuple[int, ...], is_new: bool) -> None:
        """A new sum comes to each worker once; what answers a repeat, to the one that asked."""
        ranks = self.mappings[packet.mapping].fabric.ranks
        reached = sorted(self._reached(leaving))
        expected = list(ranks) if is_new else [packet.asker]
        if reached != expected:
            what = "a new sum" if is_new else f"what worker {packet.asker} asked for"
            raise Violation(f"{what} reaches the workers {reached}, not {expected}")

    def _reached(self, leaving: tuple[int, ...]) -> Iterator[int]:
        for number in leaving:
            it = self.known[number]
            if isinstance(it, Arrival):
                yield it.worker
            else:
                yield from self._reached(self.move(number, self.power_on)[1])


def _mask(numbers: Iterable[int]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask
