"""Switches of a tree that break its rules, each in one way, which the search must find out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from ina.protocol.codec import Header
from ina.protocol.slot_model import Outcome, Slot, Tag
from ina.protocol.spec import PATH_BITS_PER_LEVEL, UDP_PORT, Flag, Kind
from ina.protocol.switch_model import Attachment, Departure, ModelJob, SwitchModel
from tests.protocol.tree_fabric import Fabric


class StoresResults(SwitchModel):
    """The parent's result takes the place of the sum that went up."""

    def pass_down(
        self, job: ModelJob, header: Header, values: tuple[int, ...]
    ) -> Iterator[Departure]:
        slot = self.slots[self.physical_slot(job, header)]
        if slot.owner == Tag(job.epoch, header.seq) and slot.bitmap == job.all_bits:
            slot.values = values
        yield from super().pass_down(job, header, values)


class ChangesWhatLeaves(SwitchModel):
    """The header of what a contribution brings about is not what it should be."""

    def changed(self, job: ModelJob, asks: Header, told: Header) -> Header:
        """``told``, which leaves because of ``asks``, as it should not be."""
        raise NotImplementedError

    def _distribute(
        self, outcome: Outcome, job: ModelJob, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        for departure in super()._distribute(outcome, job, slot, header):
            yield replace(departure, header=self.changed(job, header, departure.header))


class RootMarksAll(ChangesWhatLeaves):
    """The root's result to all says REPLAY."""

    def changed(self, job: ModelJob, asks: Header, told: Header) -> Header:
        is_result = told.kind is Kind.RESULT
        return replace(told, flags=told.flags | Flag.REPLAY) if is_result else told


class SignsAsTheAsker(ChangesWhatLeaves):
    """A sum going up has the number of the child whose packet it was."""

    def changed(self, job: ModelJob, asks: Header, told: Header) -> Header:
        return told if job.parent is None else replace(told, worker=asks.worker)


class KeepsThePacketsFlags(ChangesWhatLeaves):
    """A sum going up has the flags of one packet, not the slot's."""

    def changed(self, job: ModelJob, asks: Header, told: Header) -> Header:
        return told if job.parent is None else replace(told, flags=asks.flags)


class KeepsThePacketsExponent(ChangesWhatLeaves):
    """A sum going up has the next exponent of one packet, not the largest."""

    def changed(self, job: ModelJob, asks: Header, told: Header) -> Header:
        return told if job.parent is None else replace(told, next_exponent=asks.next_exponent)


class WritesAnotherChild(SwitchModel):
    """A sum that goes up again has another child in its path than the one that asked."""

    def _distribute(
        self, outcome: Outcome, job: ModelJob, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        if job.parent is not None and outcome is Outcome.REPLAY:
            ways = job.parent.ways
            other = ways[(header.worker + 1) % len(ways)]
            header = replace(header, path=header.path & ~job.parent.path_mask | other)
        return super()._distribute(outcome, job, slot, header)


class AstrayToAll(SwitchModel):
    """A replay whose path leads to nobody goes to all children."""

    def pass_down(
        self, job: ModelJob, header: Header, values: tuple[int, ...]
    ) -> Iterator[Departure]:
        assert job.parent is not None
        if header.path & job.parent.path_mask not in job.parent.ways:
            header = replace(header, flags=header.flags & ~Flag.REPLAY)
        return super().pass_down(job, header, values)


class ReplaysToAllBelow(SwitchModel):
    """A replay that comes down goes to all children."""

    def pass_down(
        self, job: ModelJob, header: Header, values: tuple[int, ...]
    ) -> Iterator[Departure]:
        for worker, to in job.receivers:
            yield Departure(to, replace(header, worker=worker), values)


class ReadsAnotherLevel(SwitchModel):
    """A switch reads another level's bits in a path."""

    levels: ClassVar[int]  # above its own; negative: below

    def install(self, job: ModelJob) -> None:
        if job.parent is not None:
            mask = self._moved(job.parent.path_mask)
            ways = tuple(map(self._moved, job.parent.ways))
            job = replace(job, parent=replace(job.parent, path_mask=mask, ways=ways))
        super().install(job)

    def _moved(self, bits: int) -> int:
        by = self.levels * PATH_BITS_PER_LEVEL
        return bits << by if by > 0 else bits >> -by


class ReadsTheLevelAbove(ReadsAnotherLevel):
    """A switch reads in a path which child of its parent is meant."""

    levels = 1


class ReadsTheLevelBelow(ReadsAnotherLevel):
    """A switch reads in a path which child of its child is meant."""

    levels = -1


class BelievesAnyResult(SwitchModel):
    """Whoever sends a result is taken for the parent."""

    @staticmethod
    def _is_neighbour(job: ModelJob, sender: Attachment, header: Header) -> bool:
        if header.kind is Kind.RESULT:
            return job.parent is not None
        return SwitchModel._is_neighbour(job, sender, header)


class BelievesResultsOfChildren(SwitchModel):
    """A child's result is taken for the parent's."""

    @staticmethod
    def _is_neighbour(job: ModelJob, sender: Attachment, header: Header) -> bool:
        if header.kind is Kind.RESULT and sender in job.workers:
            return job.parent is not None
        return SwitchModel._is_neighbour(job, sender, header)


class TakesWhatPassesThrough(Fabric):
    """A switch takes what is sent to the UDP port, to whatever address."""

    def is_ours(self, switch: int, to: Attachment) -> bool:
        return to.udp_port == UDP_PORT
