"""Packets that are damaged on their way, and a switch whose memory forgets."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from ina.switch.pipeline import Pipeline
from ina.testing import numerics
from ina.testing.frames import PAYLOAD_OFFSET
from tests.worlds.virtual.cores import Array
from tests.worlds.virtual.star import Star

Damage = Callable[[random.Random, bytes], bytes]
"""What becomes of a packet on its way."""
Tensor = tuple[str, list[Array], list[Array]]
"""Op, each rank's part, where its result goes."""


def flip_bit(rng: random.Random, packet: bytes) -> bytes:
    """One bit, anywhere."""
    damaged = bytearray(packet)
    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


class Damager:
    """Damages a share of the packets to the switch, of those from it, and of its job's slots."""

    def __init__(self, star: Star, seed: int, damage: Damage = flip_bit) -> None:
        self.up = self.down = 0.0
        """Of packets to the switch, and from it."""
        self.memory = 0.0
        """One bit of one register of one slot, for such a share of the packets to the switch."""
        self.left = 10**9
        """How often, at most."""
        self.damaged = 0
        self._random = random.Random(seed)
        self._damage = damage
        switch = star.fabric.switches["s1"]
        assert switch.pipeline is not None
        self._pipeline: Pipeline = switch.pipeline
        self._slots = star.slots
        for port in star.up:
            port.set_tap(self._to_switch)
        for port in star.down:
            port.set_tap(lambda frame: self._changed(frame, self.down))

    def _to_switch(self, frame: bytes) -> bytes:
        if self._strikes(self.memory):
            self._flip_register()
        return self._changed(frame, self.up)

    def _changed(self, frame: bytes, share: float) -> bytes:
        if not self._strikes(share):
            return frame
        payload = self._damage(self._random, frame[PAYLOAD_OFFSET:])
        return frame[:PAYLOAD_OFFSET] + payload

    def _flip_register(self) -> None:
        """Of values as often as of all others together."""
        registers = [one for one in self._pipeline.program.registers if one.size > self._slots]
        values = [one for one in registers if "value" in one.name]
        others = [one for one in registers if "value" not in one.name]
        register = self._random.choice(self._random.choice((values, others)))
        slot = self._random.randrange(self._slots)
        flipped = self._pipeline.register(register.name, slot)
        flipped ^= 1 << self._random.randrange(register.width_bits)
        self._pipeline.set_register(register.name, slot, flipped)

    def _strikes(self, share: float) -> bool:
        if self.left == 0 or self._random.random() >= share:
            return False
        self.left -= 1
        self.damaged += 1
        return True


def wrong_sums(star: Star, tensors: Sequence[Tensor]) -> list[tuple[int, int]]:
    """Tensor and rank of each sum that was given out and is not the right one, bit for bit."""
    wrong = []
    for number, (op, parts, outs) in enumerate(tensors, 1):
        right = numerics.all_reduce(parts, op, star.values)
        for rank, out in enumerate(outs):
            if number in star.done[rank] and not numerics.same_bits(out, right):
                wrong.append((number, rank))
    return wrong


def random_tensors(rng: random.Random, workers: int, most_elems: int, count: int) -> list[Tensor]:
    """All types, with what is special in floats."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    tensors: list[Tensor] = []
    for _ in range(count):
        dtype = rng.choice((np.dtype(np.int32), *numerics.FLOATS))
        elems = rng.randint(1, most_elems)
        parts: list[Array] = []
        for _ in range(workers):
            if dtype == np.int32:
                part = numbers.integers(-(2**31), 2**31, elems).astype(np.int32)
            else:
                scale = 2.0 ** rng.choice((-9, -3, 0, 0, 0, 4))
                part = (numbers.standard_normal(elems) * scale).astype(dtype)
                if rng.random() < 0.1:
                    part[:] = 0
                if rng.random() < 0.05:
                    part[rng.randrange(elems)] = rng.choice((np.inf, np.nan))
            parts.append(part)
        tensors.append((rng.choice(("sum", "avg")), parts, [np.empty_like(part) for part in parts]))
    return tensors
