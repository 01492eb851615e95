"""Bits that flip in a packet on its way, and who flips them."""

from __future__ import annotations

import random
import threading

from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES

_MOST_FLIPS = 8


def damaged(dice: random.Random, packet: bytes) -> bytes:
    """One bit flipped, anywhere; now and then several, another byte, or one bit of two values."""
    found = bytearray(packet)
    drawn = dice.random()
    if drawn < 0.1:
        found[dice.randrange(len(found))] ^= dice.randrange(1, 256)
    elif drawn < 0.2 and len(found) >= HEADER_BYTES + 2 * VALUE_BYTES:
        bit = dice.choice((31, 31, 30, dice.randrange(32)))
        values = range(HEADER_BYTES, len(found), VALUE_BYTES)
        for at in dice.sample(values, 2):
            found[at + 3 - bit // 8] ^= 1 << bit % 8
    else:
        flips = 1 if drawn < 0.8 else dice.randint(2, _MOST_FLIPS)
        for place in dice.sample(range(8 * len(found)), flips):
            found[place // 8] ^= 1 << place % 8
    return bytes(found)


class Flipper:
    """Damages a share of what passes it in one direction."""

    def __init__(self, to_switch: bool, seed: int) -> None:
        self.flips = 0
        self.rate = 0.0
        """Of packets; 0: it only forwards."""
        self._to_switch, self._dice = to_switch, random.Random(seed)
        self._lock = threading.Lock()  # each cable may have a thread

    def __call__(self, from_worker: bool, packet: bytes) -> tuple[bytes, ...]:
        """For :class:`tests.worlds.fakes.tap.Tap` and :class:`tests.worlds.fakes.cable.Cables`."""
        if from_worker != self._to_switch or len(packet) < HEADER_BYTES:
            return (packet,)
        with self._lock:
            if self._dice.random() >= self.rate:
                return (packet,)
            self.flips += 1
            return (damaged(self._dice, packet),)
