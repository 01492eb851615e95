"""A forger on the way who has not the job's key, but sees all packets, and has every address."""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ina.protocol.codec import Header, Values, decode, encode
from ina.protocol.spec import HEADER_BYTES

PRIME = 134_217_689
"""Below 2^27: a modulus under which values and checks of 32 bits could be had more cheaply."""
_VICTIM = 0  # the rank in whose name contributions are forged
_KEPT = 256  # packets of its own that the forger remembers

Forged = tuple[Header, Values]


def _wrapped(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def _with(values: Values, changes: dict[int, int]) -> Values:
    found: Values = values.copy()
    for at, delta in changes.items():
        found[at] = _wrapped(int(found[at]) + delta)
    return found


class Forger:
    """For :class:`tests.worlds.fakes.tap.Tap`: sends contributions of its own, before or after."""

    def __init__(self, seed: int) -> None:
        self.sent: Counter[str] = Counter()
        """Forged contributions, by strategy."""
        self.rate = 0.0
        """Of the victim's packets that it forges one of; 0: it only looks on."""
        self._dice = random.Random(seed)
        self._lock = threading.Lock()  # each cable has a thread
        self._seen: deque[Forged] = deque(maxlen=_KEPT)
        self._others: deque[Forged] = deque(maxlen=_KEPT)
        self._strategies: dict[str, Callable[[Header, Values], Forged]] = {
            "at random": self._at_random,
            "an older contribution": self._older,
            "another worker's": self._others_own,
            "check shifted": self._shifted,
            "plus a prime": self._plus_prime,
            "two that cancel": self._cancelling,
            "top bits": self._top_bits,
            "another scale": self._another_scale,
        }

    def __call__(self, from_worker: bool, packet: bytes) -> tuple[bytes, ...]:
        with self._lock:
            return self._meddle(from_worker, packet)

    def _meddle(self, from_worker: bool, packet: bytes) -> tuple[bytes, ...]:
        if not from_worker or len(packet) < HEADER_BYTES:
            return (packet,)
        own = decode(packet)
        header, values = own
        if header.worker != _VICTIM:
            self._others.append(own)
            return (packet,)
        self._seen.append(own)
        if not values.size or self._dice.random() >= self.rate:
            return (packet,)
        name = self._dice.choice(list(self._strategies))
        self.sent[name] += 1
        forged = encode(*self._strategies[name](header, values))
        order = (forged, packet) if self._dice.random() < 0.8 else (packet, forged)
        # Or the member's own does not come at all, at first.
        return order if self._dice.random() < 0.8 else (forged,)

    def forget(self) -> None:
        """What it has seen: another job begins."""
        with self._lock:
            self._seen.clear()
            self._others.clear()

    def _at_random(self, header: Header, values: Values) -> Forged:
        word = self._dice.getrandbits
        drawn = [_wrapped(word(32)) for _ in range(values.size)]
        return replace(header, check=word(32)), np.array(drawn, np.int32)

    def _older(self, header: Header, values: Values) -> Forged:
        """With this one's place and number."""
        older = self._dice.choice(self._seen)
        if older[1].size != values.size:
            return self._at_random(header, values)
        here = {"slot": header.slot, "seq": header.seq, "digest": header.digest}
        return replace(older[0], **here), older[1]  # type: ignore[arg-type]

    def _others_own(self, header: Header, values: Values) -> Forged:
        """What another worker has sent, in this one's name."""
        alike = [one for one in self._others if one[1].size == values.size]
        if not alike:
            return self._at_random(header, values)
        other = self._dice.choice(alike)
        return replace(header, check=other[0].check), other[1]

    def _shifted(self, header: Header, values: Values) -> Forged:
        """As if the weight were known: in the upper 32 bits of 64, or the lower."""
        delta = self._dice.choice((1, -1)) << self._dice.randrange(32)
        weight = self._dice.getrandbits(64) | 1
        shift = weight * delta >> self._dice.choice((0, 32))
        at = self._dice.randrange(values.size)
        return replace(header, check=(header.check + shift) % 2**32), _with(values, {at: delta})

    def _plus_prime(self, header: Header, values: Values) -> Forged:
        at, times = self._dice.randrange(values.size), self._dice.randint(1, 15)
        return header, _with(values, {at: times * PRIME})

    def _cancelling(self, header: Header, values: Values) -> Forged:
        """As if two weights were equal."""
        first, second = self._dice.sample(range(values.size), 2)
        delta = self._dice.randrange(1, 2**31)
        return header, _with(values, {first: delta, second: -delta})

    def _top_bits(self, header: Header, values: Values) -> Forged:
        """Which cancel in a check of 32 bits."""
        first, second = self._dice.sample(range(values.size), 2)
        return header, _with(values, {first: 2**31, second: 2**31})

    def _another_scale(self, header: Header, values: Values) -> Forged:
        exponent = (header.exponent + self._dice.choice((-1, 1, 8))) % 256
        return replace(header, exponent=exponent), values
