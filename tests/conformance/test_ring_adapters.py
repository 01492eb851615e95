"""Rings of adapters get the sums through the program of mode transparent, whatever cables do."""

from __future__ import annotations

import random

import pytest

from ina.p4 import names
from ina.protocol.spec import Kind
from ina.testing.cases.ring import Ring, ring
from ina.testing.device import Device
from tests.selection import LONG
from tests.worlds.fakes.ring_adapters import RingAdapter, RingNetwork

VALUES, CHUNKS = 56, 24
SEEDS = 300 if LONG else 6
STEPS = 40_000


def values(worker: int, chunk: int) -> list[int]:
    return [(worker + 1) * 1000 + chunk + it for it in range(VALUES)]


def sums(size: int, chunk: int) -> list[int]:
    return [sum(column) for column in zip(*(values(it, chunk) for it in range(size)), strict=True)]


def network(device: Device, them: Ring, rng: random.Random) -> RingNetwork:
    window = them.them.job.slots // 2
    adapters = [RingAdapter(them, it, values, CHUNKS, window) for it in them.order]
    return RingNetwork(device, adapters, rng, loss=rng.choice((0.0, 0.02, 0.1)))


def drawn(rng: random.Random) -> Ring:
    size = rng.choice((1, 2, 3, 5))
    order = rng.sample(range(size), size)
    ports = [rng.randrange(1, 4) for _ in range(size)]
    segments, slots = rng.choice(((1, 2), (1, 8), (2, 8), (4, 8)))
    return ring(VALUES, size, order=order, ports=ports, segments=segments, slots=slots)


def check(them: Ring, adapters: list[RingAdapter]) -> None:
    """What hosts have got is the sums, in order, each said to be for it."""
    for adapter in adapters:
        for chunk, (header, got) in enumerate(adapter.got):
            assert (header.kind, header.seq, header.worker) == (Kind.RESULT, chunk, adapter.worker)
            assert header.contributors == them.them.job.all_bits
            assert got == sums(len(them.order), chunk)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_all_get_all_sums_in_order(seed: int, soft_transparent: Device) -> None:
    rng = random.Random(seed)
    them = drawn(rng)
    soft_transparent.reset(VALUES)
    soft_transparent.insert(them.all_rows)
    ringed = network(soft_transparent, them, rng)
    assert ringed.run(STEPS), [(it.sent, it.acknowledged, len(it.got)) for it in ringed.adapters]
    check(them, ringed.adapters)


@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_a_switch_that_loses_all_makes_no_wrong_sum(seed: int, soft_transparent: Device) -> None:
    """Rows come back later than power, in any order; the job may not end."""
    rng = random.Random(seed)
    them = drawn(rng)
    soft_transparent.reset(VALUES)
    soft_transparent.insert((*them.all_rows, *them.ways))
    ringed = network(soft_transparent, them, rng)
    for _ in range(3):
        ringed.run(rng.randrange(400))
        soft_transparent.reset(VALUES)
        soft_transparent.insert(them.ways)
        ringed.run(rng.randrange(100))
        soft_transparent.insert(them.addresses)
        ringed.run(rng.randrange(100))
        soft_transparent.insert(them.state)
    ringed.run(2000)
    check(them, ringed.adapters)


def test_its_program_is_meant(soft_transparent: Device) -> None:
    assert soft_transparent.mode == names.TRANSPARENT
