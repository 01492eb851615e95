"""Slots that jobs share (mode `shared`), as short as it can be said: this is their specification.

A job has an aggregator: a switch where it has 2W slots of its own (``slot_model``). The switch
before it saves packets: a slot is claimed by the first contribution that comes, and what finds it
taken goes on alone. What goes up names those whose parts it holds, and the aggregator adds up what
is of nobody that it has already. So sums are exact whatever happens here; what must not be is that
some wait for what never comes:

* A worker's resend never claims, and takes its round's sum along: then the round is over here, and
  whatever comes of it later goes on alone. So from its second resend on, at the latest, a worker's
  part reaches the aggregator by itself.
* A slot is free when the result passes on its way down, and may be taken over when nothing was
  heard of its owner for a while. A late copy claims it for that while at most.

Who is put out of a slot loses nothing: the packet that takes it over leaves as the sum that was
there, whether it has values or not. So a job that is more important may have less patience than
others.

Whose slot is taken keeps it; but the slot tells its owner that another wanted it (WANTED), in the
sum that leaves it and so in the result. Only a sum that still gathers can be told: mostly one that
waits for a straggler. What leaves alone does not say it, and no sum depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ina.protocol import serial
from ina.protocol.slot_model import Contribution, Outcome, Slot, Tag
from ina.protocol.spec import Flag

STAMP_MODULUS = 1 << 32
"""Stamps are 32 bits of a clock."""


@dataclass(frozen=True)
class Claims:
    """What a job may claim on a switch that it shares."""

    lane_mask: int  # W - 1: the lane of a header's slot, of the 2W at the aggregator
    claimable: int  # lanes below it may claim a slot, the job's first + lane; the others have none
    age_us: int  # unheard of for so long, a slot's owner loses it to this job
    lead_us: int = 0  # its own slots seem to be unheard of for so much longer

    def lane(self, slot: int) -> int:
        """The lane of a header's slot."""
        return slot & self.lane_mask


def share(
    slot: Slot,
    part: Contribution,
    all_bits: int,
    claims: Claims,
    *,
    is_resend: bool,
    now_us: int,
    owner_bits: int = 0,
) -> tuple[Outcome, int]:
    """What becomes of a contribution at a shared slot, and whose parts leave with it (0: nothing).

    ``all_bits``: of all who are below this switch. ``owner_bits``: the same of the job that owns
    the slot; 0: that is gone, or it is the same job. ``EVICTED``: what is in the slot has to leave,
    and then the contribution begins its round there.
    """
    is_own = slot.owner.epoch == part.tag.epoch
    if is_resend:
        return _flush(slot, part, all_bits) if is_own else (Outcome.MISSED, part.bitmap)
    unheard_us = (now_us - slot.stamp_us) % STAMP_MODULUS
    if not (is_own or unheard_us >= claims.age_us):
        # The owner's next sum that leaves says it; the next round forgets.
        slot.flags |= Flag.WANTED
        return Outcome.COLLISION, part.bitmap
    slot.stamp_us = (now_us - claims.lead_us) % STAMP_MODULUS
    if not is_own:
        is_open = slot.bitmap not in (0, owner_bits)
        if owner_bits and is_open and slot.said and part.bitmap != all_bits:
            return Outcome.EVICTED, slot.bitmap
        slot.overwrite(part)
    elif slot.owner == part.tag:
        before = slot.bitmap
        if not slot.enter(part, all_bits):
            is_inside = before | part.bitmap == before
            return (Outcome.DUPLICATE, 0) if is_inside else (Outcome.LATE, part.bitmap)
    elif part.tag.is_newer(slot.owner):
        slot.overwrite(part)
    else:
        return Outcome.LATE, part.bitmap
    return (Outcome.RESULT, all_bits) if slot.bitmap == all_bits else (Outcome.ABSORBED, 0)


def release(slot: Slot, epoch: int, now_us: int) -> None:
    """A result passes on its way down: the job's slot is anybody's."""
    if slot.owner.epoch == epoch:
        slot.stamp_us = (now_us + STAMP_MODULUS // 2) % STAMP_MODULUS  # as old as can be


def _flush(slot: Slot, part: Contribution, all_bits: int) -> tuple[Outcome, int]:
    """The owner's resend takes the round's sum along, and closes the round."""
    if slot.owner.seq != part.tag.seq or slot.bitmap == 0:
        return Outcome.MISSED, part.bitmap
    is_new = slot.bitmap & part.bitmap == 0
    if is_new:
        slot.add(part)
    held = slot.bitmap
    slot.owner = Tag(slot.owner.epoch, serial.add(slot.owner.seq, 1))
    slot.bitmap = 0
    if is_new:
        return (Outcome.RESULT if held == all_bits else Outcome.JOINED_AND_FLUSHED), held
    return (Outcome.REPLAY if held == all_bits else Outcome.FLUSHED), held
