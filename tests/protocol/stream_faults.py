"""What breaks the rules of mode `stream`, each in one way, which the search must find out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ina.protocol.codec import Header
from ina.protocol.slot_model import Contribution, Outcome, Slot, Tag, add_block
from ina.protocol.switch_model import Departure, ModelJob, SwitchModel
from tests.protocol.tree_traffic import Packet


class KeepsTheLeast(Slot):
    """The minimum outlives its round."""

    def overwrite(self, part: Contribution) -> None:
        before = self.values
        super().overwrite(part)
        self.values = (*part.values[:-1], add_block(before, part.values)[-1])


class BelievesTheLast(Slot):
    """`next` is that of the last one to come, not the least."""

    def add(self, part: Contribution) -> None:
        super().add(part)
        self.values = (*self.values[:-1], part.values[-1])


class BelievesTheFirst(Slot):
    """`next` is that of the first one to come."""

    def add(self, part: Contribution) -> None:
        before = self.values[-1]
        super().add(part)
        self.values = (*self.values[:-1], before)


class AddsTheNumbers(Slot):
    """`next` is added up, as mode `pool` does with all words."""

    def add(self, part: Contribution) -> None:
        super().add(replace(part, is_stream=False))


class DoesNotClear(Slot):
    """A packet without values that begins a round leaves those of the round before."""

    def overwrite(self, part: Contribution) -> None:
        before = self.values
        super().overwrite(part)
        if not any(part.values[:-1]):
            self.values = (*before[:-1], part.values[-1])


class ComparesSigned(Slot):
    """`next` is compared as an int32, to which NO_BLOCK is less than any number."""

    def add(self, part: Contribution) -> None:
        least = min(self.values[-1], part.values[-1])
        super().add(part)
        self.values = (*self.values[:-1], least)


class SaysItsOwn(SwitchModel):
    """What leaves has the packet's `next`, not the slot's."""

    def _distribute(
        self, outcome: Outcome, job: ModelJob, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        for departure in super()._distribute(outcome, job, slot, header):
            values = (*departure.values[:-1], self.said)
            yield replace(departure, values=values)

    def contribute(
        self, job: ModelJob, header: Header, values: tuple[int, ...], congested: bool = False
    ) -> list[Departure]:
        self.said = values[-1]
        return super().contribute(job, header, values, congested)


class DoesNotExpand(SwitchModel):
    """A packet without values that completes a round, or repeats one, leaves without them."""

    def contribute(
        self, job: ModelJob, header: Header, values: tuple[int, ...], congested: bool = False
    ) -> list[Departure]:
        departures = super().contribute(job, header, values, congested)
        if header.value_count != 1:
            return departures
        return [
            replace(it, header=replace(it.header, value_count=1), values=it.values[-1:])
            for it in departures
        ]


class AddsTheSilent(SwitchModel):
    """Zero blocks are not answered: the switch counts whoever has nothing to say as there.

    As OmniReduce's does, which remembers what each worker has said last.
    """

    silent: Callable[[Header], list[Packet]]
    """Of a round, by a packet of it."""

    def contribute(
        self, job: ModelJob, header: Header, values: tuple[int, ...], congested: bool = False
    ) -> list[Departure]:
        slot = self.slots[self.physical_slot(job, header)]
        if Tag(job.epoch, header.seq).is_newer(slot.owner):
            for it in self.silent(header):
                super().contribute(job, it.header, it.values)
        return super().contribute(job, header, values, congested)
