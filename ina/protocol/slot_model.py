"""The slot machine of mode `pool`, as short as it can be said: this file is its specification.

A job has 2W slots, W to a version; chunk ``seq`` uses slot ``seq mod 2W``. A worker sends chunk
t + W only when it holds the result of chunk t. That two versions are enough follows:

* Let some worker send chunk t + 2W, the next to use the slot of chunk t. It holds the result of
  t + W, so every worker has contributed to t + W, so every worker holds the result of t. Nobody
  needs what the slot keeps of chunk t any more: taking it over loses nothing. (With one version,
  the sender of t + W knows only that it has the result of t *itself*.)
* While a worker lacks the result of t, no newer chunk can own the slot. So its repeated
  contribution finds the round open (and is added once, by the bitmap) or complete (and the stored
  result answers it): a lost contribution and a lost result are mended by the same resend.
* A contribution that arrives after its slot has been taken over is a late copy, for its worker has
  moved on. The owner's tag only grows, so the copy compares as older, however late it is.

Slots start at epoch 0, which is never issued, and epochs only grow over all jobs of a switch: the
first contribution of a job is newer than anything its slots hold. Nothing is ever cleared.

A contribution may be of several workers at once: of a switch that sums for them (``shared_model``).
Then it counts if none of them is in, or if all who are in are among them.

In mode `stream` the last word of a packet is no value: of the words there the slot keeps the least.

Nothing of this looks at values, so a round may have packets without any (``spec.Shape``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from ina.protocol.serial import is_newer
from ina.protocol.spec import NO_FLAGS, Flag

STICKY_FLAGS = Flag.ECN | Flag.OVERFLOW | Flag.NON_FINITE | Flag.WANTED
"""The flags that a slot collects from the contributions of a round."""

POOL_STICKY_FLAGS = STICKY_FLAGS & ~Flag.WANTED
"""Of them, those that the program of mode `pool` knows: it has no slots that jobs share."""


DIGEST_MODULUS = 1 << 16
"""A slot adds the digests of a round up modulo this."""

CHECK_MODULUS = 1 << 32
"""And the checks: as it adds values."""


class Outcome(Enum):
    """What becomes of a contribution."""

    ABSORBED = auto()  # added to a round that is still open; nothing is sent
    RESULT = auto()  # it completed the round; the result goes to all the job's workers
    REPLAY = auto()  # repeated after completion; the stored result goes to this worker alone
    DUPLICATE = auto()  # repeated in an open round; dropped
    STALE = auto()  # older than the slot's owner; dropped
    # And where slots are shared, with an aggregator above (ina.protocol.shared_model):
    JOINED_AND_FLUSHED = auto()  # a resend, new to the sum, that takes it up incomplete
    FLUSHED = auto()  # a resend, in the sum already, that takes it up incomplete
    COLLISION = auto()  # the slot is another job's; the contribution goes up alone, as below
    BYPASSED = auto()  # its lane has no slot
    LATE = auto()  # its round is over in the slot, or it is of some who are in and some who are not
    MISSED = auto()  # a resend that finds no sum of its round
    EVICTED = auto()  # absorbed, in the place of another job's sum, which leaves incomplete


@dataclass(frozen=True, order=True)
class Tag:
    """Whose round it is. ``epoch`` and ``seq`` are 32-bit serial numbers."""

    epoch: int
    seq: int

    def is_newer(self, other: Tag) -> bool:
        """Returns whether this tag's round comes after the other's."""
        if self.epoch != other.epoch:
            return is_newer(self.epoch, other.epoch)
        return is_newer(self.seq, other.seq)


@dataclass(frozen=True)
class Contribution:
    """Some workers' part of a chunk, or one's: ``bitmap`` has a bit of each; ``values`` are int32.

    They are empty where the packet has none: its round has none, or its worker gives none to it.
    """

    tag: Tag
    bitmap: int
    next_exponent: int = 0
    flags: Flag = NO_FLAGS
    values: tuple[int, ...] = ()
    digest: int = 0
    check: int = 0
    said: tuple[int, ...] = ()
    """What all packets of the round say alike: slot, exponent, value type; empty: no values."""
    is_stream: bool = False
    """Whether the last of ``values`` is `next`: what its worker would have follow."""


@dataclass
class Slot:
    """What a switch keeps of one slot.

    A round that begins without values begins at 0, never with what another round, or another job,
    has left: a later packet of it may carry values and must not read those out.
    """

    owner: Tag = Tag(0, 0)
    bitmap: int = 0
    next_exponent: int = 0
    flags: Flag = NO_FLAGS
    values: tuple[int, ...] = ()
    digest: int = 0
    check: int = 0
    stamp_us: int = 0
    """Where slots are shared: when the owner was last heard of, 32 bits of any clock."""
    said: tuple[int, ...] = ()
    """And what the packets of its round say."""

    def contribute(self, part: Contribution, all_bits: int) -> Outcome:
        """Counts one admitted contribution; ``all_bits`` has the bit of each worker of the job."""
        if part.tag == self.owner:
            if not self.enter(part, all_bits):
                return Outcome.REPLAY if self.bitmap == all_bits else Outcome.DUPLICATE
        elif part.tag.is_newer(self.owner):
            self.overwrite(part)
        else:
            return Outcome.STALE
        return Outcome.RESULT if self.bitmap == all_bits else Outcome.ABSORBED

    def enter(self, part: Contribution, all_bits: int) -> bool:
        """Counts one of the owner's round in, where it can be; returns whether it is."""
        if self.bitmap & part.bitmap == 0:
            if self.bitmap == 0:  # nobody is in (a closed round)
                self.overwrite(part)
            else:
                self.add(part)
            return True
        if self.bitmap not in (all_bits, part.bitmap) and self.bitmap & ~part.bitmap == 0:
            self.overwrite(part)  # it has all who are in, and others
            return True
        return False

    def overwrite(self, part: Contribution) -> None:
        """The contribution begins a round."""
        self.owner = part.tag
        self.bitmap = part.bitmap
        self.next_exponent = part.next_exponent
        self.flags = part.flags & STICKY_FLAGS
        self.digest = part.digest
        self.check = part.check
        self.values = part.values or (0,) * len(self.values)
        self.said = part.said

    def add(self, part: Contribution) -> None:
        """Adds one of workers that are not in."""
        self.bitmap |= part.bitmap
        self.next_exponent = max(self.next_exponent, part.next_exponent)
        self.flags |= part.flags & STICKY_FLAGS
        self.digest = (self.digest + part.digest) % DIGEST_MODULUS
        self.check = (self.check + part.check) % CHECK_MODULUS
        if part.values:
            add = add_block if part.is_stream else add_int32
            self.values = add(self.values, part.values)


def add_int32(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    """Adds elementwise as the hardware does: int32, two's complement, wrapping."""
    return tuple((a + b + 2**31) % 2**32 - 2**31 for a, b in zip(left, right, strict=True))


def add_block(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    """Adds values, but for the last word: of that, without a sign, the lesser one stays."""
    least = min(left[-1], right[-1], key=lambda word: word % 2**32)
    return (*add_int32(left[:-1], right[:-1]), least)
