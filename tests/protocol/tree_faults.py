"""Switches of a tree that break the rules, each in one way, which the search must find out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ina.protocol.codec import Header
from ina.protocol.slot_model import Outcome, Slot, Tag
from ina.protocol.spec import PATH_BITS_PER_LEVEL, UDP_PORT, DropReason, Flag, Kind
from ina.protocol.switch_model import Attachment, Departure, Dropped, Job, SwitchModel
from tests.protocol.tree_fabric import Fabric


class StoresResults(SwitchModel):
    """The parent's result takes the place of the sum that went up."""

    def pass_down(self, job: Job, header: Header, values: tuple[int, ...]) -> Iterator[Departure]:
        slot = self.slots[self.physical_slot(job, header)]
        if slot.owner == Tag(job.epoch, header.seq) and slot.bitmap == job.all_bits:
            slot.values = values
        yield from super().pass_down(job, header, values)


class RootRepliesToAll(SwitchModel):
    """The root answers a repeat as if it had completed the round."""

    def _distribute(
        self, outcome: Outcome, job: Job, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        to_all = Outcome.RESULT if outcome is Outcome.REPLAY else outcome
        return super()._distribute(to_all, job, slot, header)


class RootMarksAll(SwitchModel):
    """The root's result to all says REPLAY."""

    def _distribute(
        self, outcome: Outcome, job: Job, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        for departure in super()._distribute(outcome, job, slot, header):
            header = departure.header
            if header.kind is Kind.RESULT:
                header = replace(header, flags=header.flags | Flag.REPLAY)
            yield replace(departure, header=header)


class WritesAnotherChild(SwitchModel):
    """A sum that goes up again has another child in its path than the one that asked."""

    def _distribute(
        self, outcome: Outcome, job: Job, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        if job.parent is not None and outcome is Outcome.REPLAY:
            ways = job.parent.ways
            other = ways[(header.worker + 1) % len(ways)]
            header = replace(header, path=header.path & ~job.parent.path_mask | other)
        return super()._distribute(outcome, job, slot, header)


class SignsAsTheAsker(SwitchModel):
    """A sum going up has the number of the child whose packet it was."""

    def _distribute(
        self, outcome: Outcome, job: Job, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        for departure in super()._distribute(outcome, job, slot, header):
            if job.parent is not None:
                signed = replace(departure.header, worker=header.worker)
                departure = replace(departure, header=signed)
            yield departure


class KeepsThePacketsFlags(SwitchModel):
    """A sum going up has the flags of one packet, not the slot's."""

    def _distribute(
        self, outcome: Outcome, job: Job, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        for departure in super()._distribute(outcome, job, slot, header):
            if job.parent is not None:
                told = replace(departure.header, flags=header.flags)
                departure = replace(departure, header=told)
            yield departure


class KeepsThePacketsExponent(SwitchModel):
    """A sum going up has the next exponent of one packet, not the largest."""

    def _distribute(
        self, outcome: Outcome, job: Job, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        for departure in super()._distribute(outcome, job, slot, header):
            if job.parent is not None:
                told = replace(departure.header, next_exponent=header.next_exponent)
                departure = replace(departure, header=told)
            yield departure


class AstrayToAll(SwitchModel):
    """A replay whose path leads to nobody goes to all children."""

    def pass_down(self, job: Job, header: Header, values: tuple[int, ...]) -> Iterator[Departure]:
        assert job.parent is not None
        if header.path & job.parent.path_mask not in job.parent.ways:
            header = replace(header, flags=header.flags & ~Flag.REPLAY)
        return super().pass_down(job, header, values)


class ReplaysToAllBelow(SwitchModel):
    """A replay that comes down goes to all children."""

    def pass_down(self, job: Job, header: Header, values: tuple[int, ...]) -> Iterator[Departure]:
        for worker, to in job.receivers:
            yield Departure(to, replace(header, worker=worker), values)


class ReadsTheLevelAbove(SwitchModel):
    """A switch reads in a path which child of its parent is meant."""

    def install(self, job: Job) -> None:
        if job.parent is not None:
            mask = job.parent.path_mask << PATH_BITS_PER_LEVEL
            ways = tuple(way << PATH_BITS_PER_LEVEL for way in job.parent.ways)
            job = replace(job, parent=replace(job.parent, path_mask=mask, ways=ways))
        super().install(job)


class ReadsTheLevelBelow(SwitchModel):
    """A switch reads in a path which child of its child is meant."""

    def install(self, job: Job) -> None:
        if job.parent is not None:
            mask = job.parent.path_mask >> PATH_BITS_PER_LEVEL
            ways = tuple(way >> PATH_BITS_PER_LEVEL for way in job.parent.ways)
            job = replace(job, parent=replace(job.parent, path_mask=mask, ways=ways))
        super().install(job)


class BelievesAnyResult(SwitchModel):
    """Whoever sends a result is taken for the parent."""

    @staticmethod
    def _is_neighbour(job: Job, sender: Attachment, header: Header) -> bool:
        if header.kind is Kind.RESULT:
            return job.parent is not None
        return SwitchModel._is_neighbour(job, sender, header)


class BelievesResultsOfChildren(SwitchModel):
    """A child's result is taken for the parent's."""

    @staticmethod
    def _is_neighbour(job: Job, sender: Attachment, header: Header) -> bool:
        if header.kind is Kind.RESULT and sender in job.workers:
            return job.parent is not None
        return SwitchModel._is_neighbour(job, sender, header)


class PassesOldResults(SwitchModel):
    """A result's epoch is not looked at."""

    def admit(self, sender: Attachment, header: Header) -> Job:
        job = self.jobs[header.job]
        if header.kind is Kind.RESULT and self._is_neighbour(job, sender, header):
            return job
        return super().admit(sender, header)


class AdmitsAnyEpoch(SwitchModel):
    """A contribution's epoch is not looked at."""

    def admit(self, sender: Attachment, header: Header) -> Job:
        job = self.jobs[header.job]
        if header.kind is Kind.CONTRIBUTION and self._is_neighbour(job, sender, header):
            return job
        return super().admit(sender, header)


class AdmitsAnySender(SwitchModel):
    """A contribution's port and address are not looked at."""

    def admit(self, sender: Attachment, header: Header) -> Job:
        if header.kind is Kind.CONTRIBUTION and header.job in self.jobs:
            workers = self.jobs[header.job].workers
            if header.worker >= len(workers):
                raise Dropped(DropReason.MEMBER)
            sender = workers[header.worker]
        return super().admit(sender, header)


class TakesWhatPassesThrough(Fabric):
    """A switch takes what is sent to the UDP port, to whatever address."""

    def is_ours(self, switch: int, to: Attachment) -> bool:
        return to.udp_port == UDP_PORT
