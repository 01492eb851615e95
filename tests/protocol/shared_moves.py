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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from ina.protocol.shared_model import STAMP_MODULUS
from ina.protocol.slot_model import STICKY_FLAGS, Slot, Tag
from ina.protocol.spec import NO_FLAGS, PATH_BITS, Flag, Kind
from ina.protocol.switch_model import EPOCH_BITS, Departure, SwitchModel
from tests.protocol.moves import Arrival, Moved, Moves, SlotState, frozen
from tests.protocol.search import Violation
from tests.protocol.shared_tenants import Mapping, Owned, Tenants
from tests.protocol.shared_told import Found, check_told, unwanted
from tests.protocol.tree_fabric import WORKER

NOW_US = 3
"""What anybody waits, before it, is where the clock came round."""

NOBODY = 98
"""Asks for what leaves because another job takes its slot."""
_NO_PATH = (1 << PATH_BITS) - 1


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


class SharedMoves(Moves[Owned]):
    """``exact``: packets that differ by chance only are told apart; ``marks``: stamps of slots,
    WANTED, and COLLISION and RESEND on the way up, are held to what they should be; sums do not
    depend on them.

    What a switch has been ``told`` is, by job, a bit for each mapping that it admits.
    """

    def __init__(self, tenants: Tenants, kinds: Kinds, exact: bool, marks: bool) -> None:
        super().__init__(tenants.mappings[0].traffic.value_count)
        self.tenants, self.kinds, self.exact, self._marks = tenants, kinds, exact, marks
        self.mappings = tenants.mappings
        self.places: list[Place] = []
        self._place_numbers: dict[Place, int] = {}
        self._ways: dict[tuple[int, int, int], tuple[bool, ...]] = {}
        self._switches: dict[tuple[int, int], SwitchModel] = {}
        self._by_header = {
            (it.traffic.number, it.traffic.first_epoch % (1 << EPOCH_BITS)): it
            for it in self.mappings
        }
        for mapping in self.mappings:
            for switch in mapping.fabric.switches:
                for slot in range(mapping.arc.slots):
                    place = self._place(mapping, switch, slot)
                    if place not in self._place_numbers:
                        self._place_numbers[place] = self.add_slot(switch)
                        self.places.append(place)

    def _switch(self, place: int, told: int) -> SwitchModel:
        """As it is programmed at a moment; states of slots are put into it."""
        if (place, told) not in self._switches:
            slots = max(max(it.arc.first + it.arc.window, it.arc.slots) for it in self.mappings)
            value_count = self.mappings[0].traffic.value_count
            switch = self.kinds.switch(slots, value_count)
            switch.now_us = NOW_US
            for mappings in self.tenants.of:
                here = [it for it in mappings if it.is_told(told)]
                if place in mappings[0].fabric.switches:
                    switch.install(here[0].entries(place))
                    for it in here[1:]:
                        switch.install_beside(it.entries(place))
            self._switches[place, told] = switch
        return self._switches[place, told]

    def mapping(self, number: int) -> Mapping:
        """Whose a packet is."""
        return self.mappings[self.packet(number).mapping]

    # -- numbers --

    def cell(self, packet: Owned) -> int:
        mapping = self.mappings[packet.mapping]
        return self._place_numbers[self._place(mapping, packet.at, packet.header.slot)]

    def number(self, it: Owned | Arrival) -> int:
        if isinstance(it, Owned):
            it = self._plain(it)
        is_new = it not in self.known
        number = super().number(it)
        if is_new and isinstance(it, Owned) and not self.exact:
            alike = [super(SharedMoves, self).number(other) for other in self._alike(it)]
            mask = 0
            for other in alike:
                mask |= 1 << other
            for other in alike:
                self.masks[other] |= mask
        return number

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

    def ways(self, number: int, state: int, told: int) -> tuple[bool, ...]:
        key = (number, state, told)
        if key not in self._ways:
            if not self.mapping(number).is_told(told):
                self.move(number, state, told)  # which sees to it that nothing happens
                self._ways[key] = ()
            else:
                may_be_old = self.may_find_old(self.packet(number), self.cells[number], state)
                self._ways[key] = (False, True) if may_be_old else (False,)
        return self._ways[key]

    def may_find_old(self, it: Owned, cell: int, state: int) -> bool:
        """Whether it makes a difference how long the owner of the slot has been silent."""
        place = self.places[cell]
        return (
            place.owner == -1
            and place.slot >= 0
            and it.header.kind is Kind.CONTRIBUTION
            and not it.is_resend
            and self.slot_states[state][0].epoch != self.mappings[it.mapping].traffic.first_epoch
        )

    def receive(self, number: int, before: int, told: int, old: bool) -> Moved:
        packet, place = self.packet(number), self.places[self.cells[number]]
        mapping = self.mappings[packet.mapping]
        stamp_us = (NOW_US - self._age_us(mapping) + (not old)) % STAMP_MODULUS
        is_admitted = mapping.is_told(told)
        found = self._found(number, before, told, stamp_us)
        slot, departures, _ = found
        after = before
        if place.slot >= 0:
            after = self._kept(slot)
            if self._marks and is_admitted:
                if place.owner == -1:
                    self._check_stamp(packet, self.slot_states[before], slot, old, stamp_us)
                wanted = self._found(number, before, told, stamp_us, Flag.WANTED)
                check_told(packet, self.slot_states[before], found, wanted)
        leaving = tuple(self._leave(packet, it, before, old) for it in departures)
        if (leaving or after != before) and not is_admitted:
            raise Violation("what the switch has not been told of is admitted")
        if packet.at == 0 and leaving:
            admitted = self.tenants.told_of(mapping)
            if after != before:
                self.check_way_back(leaving, admitted, list(mapping.fabric.ranks), "a new sum")
            else:
                asker = [packet.asker] * (packet.asker != NOBODY)
                self.check_way_back(leaving, admitted, asker, f"what {packet.asker} asked for")
        return after, leaving

    def _found(
        self, number: int, before: int, told: int, stamp_us: int, flags: Flag = NO_FLAGS
    ) -> Found:
        """What the switch makes of the packet; ``flags``: that the slot has besides."""
        packet, place = self.packet(number), self.places[self.cells[number]]
        switch = self._switch(packet.at, told)
        switch.slots.clear()
        switch.outcomes.clear()
        slot = self._slot_type(place)(*self.slot_states[before])
        slot.stamp_us = stamp_us
        slot.flags |= flags
        index = {place.slot} - {-1}
        if index:
            switch.slots[place.slot] = slot
        departures = switch.receive(packet.sender, self.payload(number))
        if switch.slots.keys() - index:
            raise Violation(f"it touched the slots {set(switch.slots)}")
        return Found(slot, departures, {outcome for _, outcome in switch.outcomes})

    @staticmethod
    def _age_us(mapping: Mapping) -> int:
        """How long its workers' packets wait for a silent owner."""
        return mapping.fabric.claims(mapping.traffic.number, mapping.arc).age_us

    def _slot_type(self, place: Place) -> type[Slot]:
        if place.owner == -1:
            return self.kinds.shared_slot
        return self.kinds.own_slot if place.switch else self.kinds.root_slot

    def _kept(self, slot: Slot) -> int:
        return self.slot_states.number(frozen(slot, stamp_us=0, flags=slot.flags & ~Flag.WANTED))

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
            owner = self.slot_states[before][0].epoch
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
            return self._arrive(at - WORKER, departure, packet)
        if header.kind is Kind.CONTRIBUTION:
            has_collided = whose is mapping and self.may_find_old(packet, self.cell(packet), before)
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

    def _arrive(self, worker: int, departure: Departure, packet: Owned) -> int:
        mapping, got = self.mappings[packet.mapping], unwanted(departure.header)
        arrival = Arrival(mapping.job, worker, mapping.number, mapping.chunk(got.seq))
        said_by = (mapping.traffic, 0)
        self.check_result(said_by, arrival, packet, replace(got, copy=0), departure.values)
        return self.number(arrival)
