"""Slots that break the rules, which the searches must find out."""

from __future__ import annotations

from ina.protocol.slot_model import Contribution, Outcome, Slot


class OlderCounts(Slot):
    """No tag check: whatever arrives belongs to the round that is open."""

    def contribute(self, part: Contribution, all_bits: int) -> Outcome:
        if self.owner.is_newer(part.tag):
            part = Contribution(self.owner, part.bitmap, values=part.values)
        return super().contribute(part, all_bits)


class OlderTakesOver(Slot):
    """Tags are compared for equality only: a late copy takes the slot."""

    def contribute(self, part: Contribution, all_bits: int) -> Outcome:
        if self.owner.is_newer(part.tag):
            self.overwrite(part)
            return Outcome.RESULT if self.bitmap == all_bits else Outcome.ABSORBED
        return super().contribute(part, all_bits)


class NoBitmap(Slot):
    """Contributions are counted, but not remembered by worker."""

    def contribute(self, part: Contribution, all_bits: int) -> Outcome:
        if part.tag == self.owner and self.bitmap & part.bitmap and self.bitmap != all_bits:
            self.add(part)
            return Outcome.ABSORBED
        return super().contribute(part, all_bits)


class ReplaysOpenRound(Slot):
    """A repeated contribution is answered before the round is complete."""

    def contribute(self, part: Contribution, all_bits: int) -> Outcome:
        outcome = super().contribute(part, all_bits)
        return Outcome.REPLAY if outcome is Outcome.DUPLICATE else outcome


class NeverReplays(Slot):
    """A repeated contribution is dropped although the result is there."""

    def contribute(self, part: Contribution, all_bits: int) -> Outcome:
        outcome = super().contribute(part, all_bits)
        return Outcome.DUPLICATE if outcome is Outcome.REPLAY else outcome


class ComparesPlainly(Slot):
    """Sequence numbers are compared as if they never wrapped around."""

    def contribute(self, part: Contribution, all_bits: int) -> Outcome:
        if part.tag.epoch == self.owner.epoch and part.tag != self.owner:
            if part.tag.seq < self.owner.seq:
                return Outcome.STALE
            self.overwrite(part)
            return Outcome.RESULT if self.bitmap == all_bits else Outcome.ABSORBED
        return super().contribute(part, all_bits)
