"""One packet at one switch, where slots are shared: what it does to the slot, and what leaves.

The switch is the reference model with the entries of a mapping. Packets and states of slots are
numbers. Whatever leaves is checked: a sum on its way up holds the parts of those whom it names and
says of them what is true; a result is whole; both go where they should.

Slots' stamps are not part of their states: any owner may have been unheard of for AGE or not, by
the truth or by a clock that has come round. So a packet finds a slot both ways (``old``).

Nor is WANTED, for nothing may depend on it: each packet finds a slot that was wanted, too, and does
the same there (:mod:`shared_told`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from typing import NamedTuple

from ina.protocol.codec import encode
from ina.protocol.shared_model import STAMP_MODULUS
from ina.protocol.slot_model import STICKY_FLAGS, Slot, Tag
from ina.protocol.spec import NO_FLAGS, PATH_BITS, Flag, Kind
from ina.protocol.switch_model import EPOCH_BITS, Departure, SwitchModel
from tests.protocol.model_check import SlotState, Violation
from tests.protocol.shared_tenants import Arrival, Mapping, Owned, Tenants
from tests.protocol.shared_told import Found, check_told, unwanted
from tests.protocol.tree_fabric import WORKER

NOW_US = 3
"""What anybody waits, before it, is where the clock came round."""

NOBODY = 98
"""Asks for what leaves because another job takes its slot."""
_NO_PATH = (1 << PATH_BITS) - 1


Admitted = tuple[int, ...]
"""By job, a bit for each of its mappings: what a switch has been told."""


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
    ``marks``: stamps of slots, WANTED, and COLLISION and RESEND on the way up, are held to what
    they should be; sums do not depend on them.
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
        self._moved: dict[tuple[int, int, Admitted, bool], tuple[int, tuple[int, ...]]] = {}
        self._switches: dict[tuple[int, Admitted], SwitchModel] = {}
        self._by_header = {
            (it.traffic.number, it.traffic.first_epoch % (1 << EPOCH_BITS)): it
            for it in self.mappings
        }
        self.power_on = self._state(Slot(values=(0,) * self._value_count))
        for mapping in self.mappings:
            for switch in mapping.fabric.switches:
                for slot in range(mapping.arc.slots):
                    self._place_number(self._place(mapping, switch, slot))

    @property
    def _value_count(self) -> int:
        return self.tenants.mappings[0].traffic.value_count

    def _switch(self, place: int, now: Admitted) -> SwitchModel:
        """As it is programmed at a moment; states of slots are put into it."""
        if (place, now) not in self._switches:
            slots = max(max(it.arc.first + it.arc.window, it.arc.slots) for it in self.mappings)
            switch = self.kinds.switch(slots, self._value_count)
            switch.now_us = NOW_US
            for mappings, admitted in zip(self.tenants.of, now, strict=True):
                here = [it for it in mappings if admitted >> it.number & 1]
                if place in mappings[0].fabric.switches:
                    switch.install(here[0].entries(place))
                    for it in here[1:]:
                        switch.install_beside(it.entries(place))
            self._switches[place, now] = switch
        return self._switches[place, now]

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
        flags, copy = header.flags & ~(Flag.COLLISION | Flag.WANTED), header.copy
        if packet.at == 0 and header.kind is Kind.CONTRIBUTION:
            flags, copy = flags & ~Flag.RESEND, 0
        if (flags, copy) == (header.flags, header.copy):
            return packet
        return replace(packet, header=replace(header, flags=flags, copy=copy))

    def _alike(self, packet: Owned) -> Iterator[Owned]:
        """Sums of the same parts, as other packets would have brought them about: whoever has
        one may have any of them. So more may happen than can, and there are fewer states."""
        header, fabric = packet.header, self.mappings[packet.mapping].fabric
        if header.kind is not Kind.CONTRIBUTION or packet.asker not in (*fabric.ranks, NOBODY):
            return
        if fabric.below(packet.at)[header.worker] >= WORKER:
            return
        plain = header.flags & ~Flag.RESEND
        again = [(header.flags, header.copy)]
        if packet.at and not self._is_unit(packet):
            again = [(plain, 0), (plain | Flag.RESEND, 1)]
        for rank in fabric.ranks_of(self.bits(packet)):
            path = fabric.tree.path(rank)
            for flags, copy in again:
                said = replace(header, path=path, flags=flags, copy=copy)
                yield replace(packet, header=said, asker=rank, asked_by=path)
        if not self._is_unit(packet):
            said = replace(header, path=_NO_PATH, flags=plain, copy=0)
            yield replace(packet, header=said, asker=NOBODY, asked_by=_NO_PATH)

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

    def move(
        self, number: int, state: int, now: Admitted, old: bool = False
    ) -> tuple[int, tuple[int, ...]]:
        """The state of the slot after a packet, and what leaves, by number."""
        key = (number, state, now, old)
        if key not in self._moved:
            try:
                self._moved[key] = self._move(*key)
            except Violation as violation:
                raise Violation(f"{violation}, when {self.known[number]} arrives") from None
        return self._moved[key]

    def _move(
        self, number: int, before: int, now: Admitted, old: bool
    ) -> tuple[int, tuple[int, ...]]:
        packet, place = self.known[number], self.places[self.cells[number]]
        assert isinstance(packet, Owned)
        mapping = self.mappings[packet.mapping]
        stamp_us = (NOW_US - self._age_us(mapping) + (not old)) % STAMP_MODULUS
        is_admitted = bool(now[mapping.job] >> mapping.number & 1)
        found = self._receive(packet, place, before, now, stamp_us)
        slot, departures, _ = found
        after = before
        if place.slot >= 0:
            after = self._state(slot)
            if self._marks and is_admitted:
                if place.owner == -1:
                    self._check_stamp(packet, self._states[before], slot, old, stamp_us)
                wanted = self._receive(packet, place, before, now, stamp_us, Flag.WANTED)
                check_told(packet, self._states[before], found, wanted)
        leaving = tuple(self._leave(packet, it, before, old) for it in departures)
        if (leaving or after != before) and not is_admitted:
            raise Violation("what the switch has not been told of is admitted")
        if packet.at == 0 and leaving:
            self._check_way_back(packet, leaving, is_new=after != before)
        return after, leaving

    def _receive(
        self,
        packet: Owned,
        place: Place,
        before: int,
        now: Admitted,
        stamp_us: int,
        flags: Flag = NO_FLAGS,
    ) -> Found:
        """What the switch makes of the packet; ``flags``: that the slot has besides."""
        switch = self._switch(packet.at, now)
        switch.slots.clear()
        switch.outcomes.clear()
        slot = self._slot_type(place)(*self._states[before])
        slot.stamp_us = stamp_us
        slot.flags |= flags
        index = {place.slot} - {-1}
        if index:
            switch.slots[place.slot] = slot
        departures = switch.receive(packet.sender, encode(packet.header, packet.values))
        if switch.slots.keys() - index:
            raise Violation(f"it touched the slots {set(switch.slots)}")
        return Found(slot, departures, {outcome for _, outcome in switch.outcomes})

    @staticmethod
    def _age_us(mapping: Mapping) -> int:
        """How long its workers' packets wait for a silent owner."""
        return mapping.fabric.claims(mapping.traffic.number, mapping.arc).age_us

    def slot_state(self, number: int) -> SlotState:
        """What a slot in the state of this number holds."""
        return self._states[number]

    def _slot_type(self, place: Place) -> type[Slot]:
        if place.owner == -1:
            return self.kinds.shared_slot
        return self.kinds.own_slot if place.switch else self.kinds.root_slot

    def _state(self, slot: Slot) -> int:
        owner, *rest = astuple(replace(slot, stamp_us=0, flags=slot.flags & ~Flag.WANTED))
        state = (Tag(*owner), *rest)
        if state not in self._state_numbers:
            self._state_numbers[state] = len(self._states)
            self._states.append(state)
        return self._state_numbers[state]

    def _check_stamp(
        self, packet: Owned, before: SlotState, slot: Slot, old: bool, stamp_us: int
    ) -> None:
        """Who is heard of keeps a slot for a while, a resend and others keep nothing, and a result
        leaves it to anybody; what is old is whoever's comes."""
        mapping = self.mappings[packet.mapping]
        epoch = mapping.traffic.first_epoch
        is_own = before[0].epoch == epoch
        if packet.asker not in (*mapping.fabric.ranks, NOBODY):
            pass  # a stranger's, which is dropped
        elif packet.header.kind is Kind.RESULT:
            if is_own:
                stamp_us = NOW_US + STAMP_MODULUS // 2
        elif not packet.is_resend:
            if old and not is_own and slot.owner != Tag(epoch, packet.header.seq):
                raise Violation("a slot is pinned: its owner is silent, and keeps it")
            if is_own or old:
                lead_us = mapping.fabric.claims(mapping.traffic.number, mapping.arc).lead_us
                stamp_us = (NOW_US - lead_us) % STAMP_MODULUS
        if slot.stamp_us != stamp_us:
            raise Violation(f"stamp {slot.stamp_us} and not {stamp_us}")

    def _leave(self, packet: Owned, departure: Departure, before: int, old: bool) -> int:
        header, mapping = departure.header, self.mappings[packet.mapping]
        whose = self._by_header.get((header.job, header.epoch))
        if whose is not mapping:
            owner = self._states[before][0].epoch
            if whose is None or owner != whose.traffic.first_epoch:
                raise Violation(f"what leaves is not of the slot's owner: {header}")
            packet = replace(
                packet, asker=NOBODY, asked_by=_NO_PATH, mapping=whose.index, header=header
            )
        taken = whose.fabric.carry(packet.at, departure.to)
        if taken is None:
            raise Violation(f"nobody is where {departure} goes")
        at, sender = taken
        if at >= WORKER:
            return self.number(self._result(at - WORKER, departure, packet))
        if header.kind is Kind.CONTRIBUTION:
            has_collided = whose is mapping and self.may_find_old(self.number(packet), before)
            self._check_sum(packet, departure, has_collided and not old)
        onward = replace(packet, at=at, sender=sender, header=header, values=departure.values)
        return self.number(onward)

    def _check_sum(self, packet: Owned, departure: Departure, has_collided: bool) -> None:
        """It holds the parts of those whom it names, each once, and says of them what is true."""
        mapping, at, got = self.mappings[packet.mapping], packet.at, unwanted(departure.header)
        fabric, bits = mapping.fabric, got.contributors
        marks = NO_FLAGS
        if fabric.is_shared(at):
            marks = packet.header.flags & Flag.RESEND
        else:
            bits = fabric.bits(at)
        if has_collided:
            marks |= Flag.COLLISION
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
        mapping, got = self.mappings[packet.mapping], unwanted(departure.header)
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
        mapping = self.mappings[packet.mapping]
        told = self.tenants.told_of(mapping)
        reached = sorted(self._reached(leaving, told))
        is_asked = packet.asker != NOBODY
        expected = list(mapping.fabric.ranks) if is_new else [packet.asker] * is_asked
        if reached != expected:
            what = "a new sum" if is_new else f"what worker {packet.asker} asked for"
            raise Violation(f"{what} reaches the workers {reached}, not {expected}")

    def _reached(self, leaving: tuple[int, ...], told: Admitted) -> Iterator[int]:
        for number in leaving:
            it = self.known[number]
            if isinstance(it, Arrival):
                yield it.worker
            else:
                yield from self._reached(self.move(number, self.power_on, told)[1], told)


def _mask(numbers: Iterable[int]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask
