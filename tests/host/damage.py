"""A network that damages what it carries, and a switch whose memory forgets."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ina.protocol.slot_model import Slot
from ina.protocol.spec import Flag
from ina.testing import numerics
from tests.host.network import SECOND, Array, Network, _Event

Damage = Callable[[random.Random, bytes], bytes]
"""What becomes of a packet on its way."""
Tensor = tuple[str, list[Array], list[Array]]
"""Op, each rank's part, where its result goes."""


def flip_bit(rng: random.Random, packet: bytes) -> bytes:
    """One bit, anywhere."""
    damaged = bytearray(packet)
    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def flip_register(rng: random.Random, slot: Slot) -> None:
    """One bit of one register of the slot."""
    register = rng.choice(
        ("value", "value", "check", "digest", "flags", "exponent", "bitmap", "seq")
    )
    if register == "value":
        at = rng.randrange(len(slot.values))
        word = (slot.values[at] % 2**32) ^ 1 << rng.randrange(32)
        signed = (word + 2**31) % 2**32 - 2**31
        slot.values = (*slot.values[:at], signed, *slot.values[at + 1 :])
    elif register == "check":
        slot.check ^= 1 << rng.randrange(32)
    elif register == "digest":
        slot.digest ^= 1 << rng.randrange(16)
    elif register == "flags":
        slot.flags ^= rng.choice((Flag.ECN, Flag.OVERFLOW, Flag.NON_FINITE))
    elif register == "exponent":
        slot.next_exponent ^= 1 << rng.randrange(8)
    elif register == "bitmap":
        slot.bitmap ^= 1 << rng.randrange(4)
    else:
        slot.owner = replace(slot.owner, seq=slot.owner.seq ^ 1 << rng.randrange(32))


class DamagedNetwork(Network):
    """Damages a share of the packets to the switch, of those from it, and of the slots it uses."""

    up: float = 0.0
    down: float = 0.0
    memory: float = 0.0
    damage: Damage = staticmethod(flip_bit)
    damaged: int = 0
    left: int = 10**9  # how often, at most

    def _deliver(self, event: _Event) -> None:
        rate = self.up if event.receiver < 0 else self.down
        if self._strikes(rate):
            event.payload = self.damage(self.random, event.payload)
        if event.receiver < 0 and self.model.slots and self._strikes(self.memory):
            flip_register(self.random, self.random.choice(list(self.model.slots.values())))
        super()._deliver(event)

    def _strikes(self, rate: float) -> bool:
        if self.left == 0 or self.random.random() >= rate:
            return False
        self.left -= 1
        self.damaged += 1
        return True

    def run_out(self, tensors: int, limit_s: float = 400.0) -> None:
        """Run until each worker has done so many tensors, or has stopped."""
        while self.now_ns < limit_s * SECOND:
            self._transmit()
            busy = [
                rank
                for rank, worker in enumerate(self.workers)
                if len(self.done[rank]) < tensors and not has_stopped(self, rank)
            ]
            if not busy or not self._times():
                return
            self._advance(limit_s + 1)


def has_stopped(network: Network, rank: int) -> bool:
    worker = network.workers[rank]
    return bool(worker.stall or worker.mismatch or worker.corruption)


def wrong_sums(network: Network, values: int, tensors: Sequence[Tensor]) -> list[tuple[int, int]]:
    """Tensor and rank of each sum that was given out and is not the right one, bit for bit."""
    wrong = []
    for number, (op, parts, outs) in enumerate(tensors, 1):
        right = numerics.all_reduce(parts, op, values)
        for rank, out in enumerate(outs):
            if number in network.done[rank] and not numerics.same_bits(out, right):
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
