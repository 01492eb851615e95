"""Bits that flip in a packet on its way, and who flips them."""

from __future__ import annotations

import random
import threading

from ina.protocol.spec import HEADER_BYTES

_WORD_BITS = 32
_MOST_FLIPS = 8
_SEQ_OFFSET = 12
_JOB = slice(2, 6)
"""Job and epoch."""


def damaged(dice: random.Random, packet: bytes) -> bytes:
    """One bit flipped, anywhere; now and then several, or another byte.

    Of several no two are at the same place of their words: two topmost bits of two values cancel in
    a check that wraps as they do (docs/protocol.md, "What passes"), which is no news.
    """
    found = bytearray(packet)
    drawn = dice.random()
    if drawn < 0.1:
        found[dice.randrange(len(found))] ^= dice.randrange(1, 256)
        return bytes(found)
    flips = 1 if drawn < 0.8 else dice.randint(2, _MOST_FLIPS)
    for place in dice.sample(range(_WORD_BITS), flips):
        word = dice.randrange(len(found) // 4)
        found[4 * word + place // 8] ^= 1 << place % 8
    return bytes(found)


class Flipper:
    """Damages a share of what passes it in one direction: of each round one contribution at most.

    As two damaged contributions of a round may cancel, as two bits of one may.
    """

    def __init__(self, to_switch: bool, seed: int) -> None:
        self.flips = 0
        self.rate = 0.0
        """Of packets; 0: it only forwards."""
        self._to_switch, self._dice = to_switch, random.Random(seed)
        self._rounds: set[bytes] = set()
        self._lock = threading.Lock()  # each cable may have a thread

    def __call__(self, from_worker: bool, packet: bytes) -> tuple[bytes, ...]:
        """For :class:`tests.security.tap.Tap` and :class:`tests.flips.cable.Cables`."""
        if from_worker != self._to_switch or len(packet) < HEADER_BYTES:
            return (packet,)
        with self._lock:
            if self._dice.random() >= self.rate:
                return (packet,)
            if self._to_switch:
                this = packet[_JOB] + packet[_SEQ_OFFSET : _SEQ_OFFSET + 4]
                if this in self._rounds:
                    return (packet,)
                self._rounds.add(this)
            self.flips += 1
            return (damaged(self._dice, packet),)
