"""Faults of shared slots and of their aggregators, which the search must find out.

Functions stand in for :func:`ina.protocol.shared_model.share`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ina.protocol.codec import Header
from ina.protocol.shared_model import Claims, share
from ina.protocol.slot_model import STICKY_FLAGS, Contribution, Outcome, Slot, Tag
from ina.protocol.spec import Flag, Kind
from ina.protocol.switch_model import Departure, ModelJob, SwitchModel
from ina.protocol.switch_model import _evicted as put_out

Gone = tuple[Outcome, int]
"""What a share() returns: what becomes of a contribution, and whose parts leave with it."""

Share = Callable[..., Gone]

FLUSHES = (Outcome.REPLAY, Outcome.FLUSHED, Outcome.JOINED_AND_FLUSHED)


def leaves_the_round_open(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """After a flush the round goes on in the slot."""
    before = slot.bitmap
    outcome, held = share(slot, part, all_bits, claims, **how)
    if how["is_resend"] and before and slot.bitmap == 0:
        slot.owner, slot.bitmap = part.tag, held
    return outcome, held


def names_its_sender_only(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """A flushed sum names whose resend it was."""
    outcome, held = share(slot, part, all_bits, claims, **how)
    return outcome, part.bitmap if outcome in FLUSHES else held


def resend_is_no_different(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """A resend claims, joins and is dropped like what is sent first."""
    return share(slot, part, all_bits, claims, **{**how, "is_resend": False})


def late_ones_join(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """What is older than the round in the slot counts in it."""
    if slot.owner.epoch == part.tag.epoch and slot.owner.is_newer(part.tag) and slot.bitmap:
        part = replace(part, tag=slot.owner)
    return share(slot, part, all_bits, claims, **how)


def epochs_are_not_compared(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """Whoever comes is taken for the slot's owner."""
    if slot.bitmap:
        slot.owner = Tag(part.tag.epoch, slot.owner.seq)
    return share(slot, part, all_bits, claims, **how)


def numbers_are_compared_plainly(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """As if they never came round: what is newer, across that, goes on alone."""
    if slot.owner.epoch == part.tag.epoch and part.tag.seq < slot.owner.seq:
        return Outcome.LATE, part.bitmap
    return share(slot, part, all_bits, claims, **how)


def without_flush(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """A resend reads a full sum out, and leaves an open one alone. With the aggregator's rule of
    supersets that is right; without it, it is not."""
    if not how["is_resend"]:
        return share(slot, part, all_bits, claims, **how)
    if slot.owner == part.tag and slot.bitmap == all_bits:
        return Outcome.REPLAY, all_bits
    return Outcome.MISSED, part.bitmap


def flushes_closed_rounds(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """A resend of the number after the one that was closed takes what is left there along."""
    if how["is_resend"] and slot.owner == part.tag and slot.bitmap == 0:
        slot.bitmap = all_bits & ~part.bitmap
    return share(slot, part, all_bits, claims, **how)


def slots_do_not_age(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """An owner that is silent keeps its slot."""
    return share(slot, part, all_bits, replace(claims, age_us=1 << 32), **how)


def resends_are_heard(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """A resend keeps its slot from others."""
    outcome, held = share(slot, part, all_bits, claims, **how)
    if slot.owner.epoch == part.tag.epoch:
        slot.stamp_us = how["now_us"]
    return outcome, held


def clocks_do_not_wrap(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """Stamps are compared as if the clock never came round."""
    silent_us = max(how["now_us"] - slot.stamp_us, 0)
    before, slot.stamp_us = slot.stamp_us, how["now_us"] - silent_us
    outcome, held = share(slot, part, all_bits, claims, **how)
    if slot.stamp_us == how["now_us"] - silent_us:
        slot.stamp_us = before
    return outcome, held


def puts_closed_rounds_out(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """What a closed round has left in a slot leaves once more, in the name of all."""
    if slot.owner.epoch != part.tag.epoch and slot.bitmap == 0 and slot.said:
        slot.bitmap = how["owner_bits"] & -how["owner_bits"]
    return share(slot, part, all_bits, claims, **how)


def nobody_is_told(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """Who finds a slot taken leaves no word."""
    before = slot.flags
    outcome, held = share(slot, part, all_bits, claims, **how)
    if outcome is Outcome.COLLISION:
        slot.flags = before
    return outcome, held


def resends_tell(slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any) -> Gone:
    """A resend that finds another job's slot leaves word, though it would not have claimed it."""
    outcome, held = share(slot, part, all_bits, claims, **how)
    if how["is_resend"] and slot.owner.epoch != part.tag.epoch:
        slot.flags |= Flag.WANTED
    return outcome, held


def own_late_ones_tell(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """A job is told of its own packet that comes late."""
    outcome, held = share(slot, part, all_bits, claims, **how)
    if outcome is Outcome.LATE:
        slot.flags |= Flag.WANTED
    return outcome, held


def taken_at_once(
    slot: Slot, part: Contribution, all_bits: int, claims: Claims, **how: Any
) -> Gone:
    """What others want is theirs: WANTED decides about a slot."""
    age_us = 0 if slot.flags & Flag.WANTED else claims.age_us
    return share(slot, part, all_bits, replace(claims, age_us=age_us), **how)


def names_the_newcomer(owner: ModelJob, header: Header, slot: Slot) -> Departure:
    """What is put out of a slot names whoever puts it out."""
    leaving = put_out(owner, header, slot)
    bit = owner.bits_of(header.worker % len(owner.workers))
    return replace(leaving, header=replace(leaving.header, contributors=bit))


def puts_out_as_the_newcomer(owner: ModelJob, header: Header, slot: Slot) -> Departure:
    """What is put out goes under the number and epoch of whoever puts it out."""
    leaving = put_out(owner, header, slot)
    said = replace(leaving.header, job=header.job, epoch=header.epoch)
    return replace(leaving, header=said)


def says_what_the_newcomer_says(owner: ModelJob, header: Header, slot: Slot) -> Departure:
    """What is put out has exponent and type of whoever puts it out."""
    leaving = put_out(owner, header, slot)
    said = replace(leaving.header, exponent=header.exponent, value_type=header.value_type)
    return replace(leaving, header=said)


def asks_for_a_result(owner: ModelJob, header: Header, slot: Slot) -> Departure:
    """What is put out has the path of whoever puts it out: a replay would go to somebody."""
    leaving = put_out(owner, header, slot)
    return replace(leaving, header=replace(leaving.header, path=header.path))


def says_nothing_of_others(owner: ModelJob, header: Header, slot: Slot) -> Departure:
    """What is put out does not say that another job wanted its slot."""
    leaving = put_out(owner, header, slot)
    said = replace(leaving.header, flags=slot.flags)
    return replace(leaving, header=said)


class RemembersOthers(Slot):
    """A round begins with what the one before was told."""

    def overwrite(self, part: Contribution) -> None:
        told = self.flags & Flag.WANTED
        super().overwrite(part)
        self.flags |= told


class TakingOverAdds(Slot):
    """Who takes a slot over is added to what is there."""

    def overwrite(self, part: Contribution) -> None:
        values = self.values if self.bitmap else (0,) * len(self.values)
        super().overwrite(part)
        self.values = tuple(map(sum, zip(self.values, values, strict=True)))


class AddsWhatOverlaps(Slot):
    """A sum is added though some of it is there."""

    def enter(self, part: Contribution, all_bits: int) -> bool:
        if self.bitmap & part.bitmap and self.bitmap != all_bits:
            self.add(part)
            return True
        return super().enter(part, all_bits)


class KnowsNoSupersets(Slot):
    """A sum that has all that is there, and more, is dropped."""

    def enter(self, part: Contribution, all_bits: int) -> bool:
        return self.bitmap & part.bitmap == 0 and super().enter(part, all_bits)


class AnswersByItself(SwitchModel):
    """A switch whose sum is full tells the workers, too."""

    def _share(
        self, job: ModelJob, claims: Claims, header: Header, part: Contribution
    ) -> list[Departure]:
        leaving = super()._share(job, claims, header, part)
        for departure in [it for it in leaving if it.header.contributors == job.all_bits]:
            for worker, to in job.receivers:
                flags = departure.header.flags & STICKY_FLAGS
                said = replace(departure.header, kind=Kind.RESULT, worker=worker, flags=flags)
                leaving.append(Departure(to, said, departure.values))
        return leaving


class BelievesWorkers(SwitchModel):
    """Whoever says whose parts a packet holds is believed."""

    @staticmethod
    def _whose(job: ModelJob, header: Header) -> int:
        return header.contributors & job.all_bits


class KeepsCollisions(SwitchModel):
    """What goes on alone does not say that the slot was another's."""

    def _share(
        self, job: ModelJob, claims: Claims, header: Header, part: Contribution
    ) -> list[Departure]:
        return [
            replace(it, header=replace(it.header, flags=it.header.flags & ~Flag.COLLISION))
            for it in super()._share(job, claims, header, part)
        ]


class TellsWhoComes(SwitchModel):
    """What finds its slot taken goes on with what the slot was told, too."""

    def _share(
        self, job: ModelJob, claims: Claims, header: Header, part: Contribution
    ) -> list[Departure]:
        leaving = super()._share(job, claims, header, part)
        return [
            replace(it, header=replace(it.header, flags=it.header.flags | Flag.WANTED))
            if it.header.flags & Flag.COLLISION
            else it
            for it in leaving
        ]


class ReleasesNothing(SwitchModel):
    """A result passes and leaves the slot to its owner."""

    def pass_down(
        self, job: ModelJob, header: Header, values: tuple[int, ...]
    ) -> Iterator[Departure]:
        stamps = {index: slot.stamp_us for index, slot in self.slots.items()}
        leaving = list(super().pass_down(job, header, values))
        for index, stamp_us in stamps.items():
            self.slots[index].stamp_us = stamp_us
        return iter(leaving)


class ReleasesForOthers(SwitchModel):
    """A result passes and frees the slot, whoever's it is."""

    def pass_down(
        self, job: ModelJob, header: Header, values: tuple[int, ...]
    ) -> Iterator[Departure]:
        leaving = list(super().pass_down(job, header, values))
        if job.claims is not None:
            for slot in self.slots.values():
                slot.stamp_us = self.now_us - job.claims.age_us
        return iter(leaving)


class PassesAllDown(SwitchModel):
    """A replay that passes goes to all below."""

    def pass_down(
        self, job: ModelJob, header: Header, values: tuple[int, ...]
    ) -> Iterator[Departure]:
        named = list(super().pass_down(job, header, values))
        return (
            Departure(to, replace(it.header, worker=worker), values)
            for it in named[:1]
            for worker, to in job.receivers
        )


class BitsByIndex(SwitchModel):
    """A switch's children have the bits of their indices, as where slots are a job's own."""

    def install(self, job: ModelJob) -> None:
        super().install(replace(job, bits=()))


class BelievesNoSwitch(SwitchModel):
    """A sum counts as one of all that its switch ever sums for."""

    def install(self, job: ModelJob) -> None:
        super().install(replace(job, sets=frozenset()))


class LooksAtFlagsOnly(SwitchModel):
    """Which copy a packet is does not say that it is a resend: a host's node echoes it alone."""

    def _share(
        self, job: ModelJob, claims: Claims, header: Header, part: Contribution
    ) -> list[Departure]:
        leaving = super()._share(job, claims, replace(header, copy=0), part)
        return [replace(it, header=replace(it.header, copy=header.copy)) for it in leaving]
