"""What breaks the rules of other shapes than SUM, each in one way, which the search finds out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from ina.protocol.codec import Header
from ina.protocol.slot_model import Contribution, Outcome, Slot
from ina.protocol.spec import OWNER_BITS, Flag, Shape
from ina.protocol.strips import Strips
from ina.protocol.switch_model import Departure, ModelJob, SwitchModel
from tests.protocol.shape_check import ShapedFabric


class DoesNotClear(Slot):
    """A packet without values that begins a round leaves those of the round before."""

    def overwrite(self, part: Contribution) -> None:
        before = self.values
        super().overwrite(part)
        self.values = part.values or before


class DoesNotExpand(SwitchModel):
    """A packet without values leaves without them, whatever it completes or repeats."""

    outcomes_without: ClassVar[tuple[Outcome, ...]] = (Outcome.RESULT, Outcome.REPLAY)

    def _distribute(
        self, outcome: Outcome, job: ModelJob, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        is_bare = header.value_count == 0 and outcome in self.outcomes_without
        for departure in super()._distribute(outcome, job, slot, header):
            yield self.stripped(departure, Strips(off=0xF, way=1)) if is_bare else departure


class AnswersWithoutValues(DoesNotExpand):
    """A repeat without values is answered so."""

    outcomes_without = (Outcome.REPLAY,)


class ReplaysWithoutValues(DoesNotExpand):
    """No repeat of a scattered chunk is answered with values."""

    def _distribute(
        self, outcome: Outcome, job: ModelJob, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        for departure in SwitchModel._distribute(self, outcome, job, slot, header):
            is_bare = header.shape == Shape.SCATTER and departure.header.flags & Flag.REPLAY
            yield self.stripped(departure, Strips(off=0xF, way=1)) if is_bare else departure


class CompleteWithItsOwner(SwitchModel):
    """A gathered chunk is complete when its owner's packet is there."""

    def contribute(
        self, job: ModelJob, header: Header, values: tuple[int, ...], congested: bool = False
    ) -> list[Departure]:
        if header.shape == Shape.GATHER and values and header.worker in range(len(job.workers)):
            bits = [0] * len(job.workers)
            bits[header.worker] = job.bits_of(header.worker)
            job = replace(job, bits=tuple(bits))
        return super().contribute(job, header, values, congested)


class OtherRows(ShapedFabric):
    """The controller writes rows that are wrong in one way."""

    def job(self, switch: int, epoch: int, slots: int) -> ModelJob:
        job = super().job(switch, epoch, slots)
        strips = tuple(map(self.to_child, job.strips))
        parent = job.parent and replace(job.parent, strips=self.to_parent(job.parent.strips))
        return replace(job, strips=strips, parent=parent)

    def to_child(self, row: Strips) -> Strips:
        """Of a child."""
        return row

    def to_parent(self, row: Strips) -> Strips:
        """Of the parent."""
        return row


class LastIndexAlone(ShapedFabric):
    """At each switch a child is on the owner's way if its index is the last one of the owner's
    path, which is that of one of at most two in a rack."""

    def job(self, switch: int, epoch: int, slots: int) -> ModelJob:
        job = super().job(switch, epoch, slots)
        last = 1 << OWNER_BITS - sum(self.tree.widths(self.tree.nodes[-1]))
        rows = (replace(it, way=last * child, way_mask=last) for child, it in enumerate(job.strips))
        return replace(job, strips=tuple(rows))


class NotDownTheOwnersWay(OtherRows):
    """What is gathered goes to no switch that the owner is below."""

    def to_child(self, row: Strips) -> Strips:
        return replace(row, on=row.on | 1 << Shape.GATHER)


class UpWithoutValues(OtherRows):
    """What is gathered goes up without values, wherever the owner is."""

    def to_parent(self, row: Strips) -> Strips:
        return replace(row, on=1 << Shape.GATHER)


class ScattersUpWithoutValues(OtherRows):
    """What is scattered goes up without values where the owner is not below."""

    def to_parent(self, row: Strips) -> Strips:
        return replace(row, off=row.off | 1 << Shape.SCATTER)


class ToAll(OtherRows):
    """Every worker gets every copy with values."""

    def to_child(self, row: Strips) -> Strips:
        return replace(row, on=0, off=0)


class ToTheOthers(OtherRows):
    """Who is on the owner's way is taken for who is not."""

    def to_child(self, row: Strips) -> Strips:
        return replace(row, on=row.off, off=row.on)
