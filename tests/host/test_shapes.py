"""Collectives of all kinds by the core that ships, over trees of reference switches."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from ina.extension.host import VerifyMode
from ina.protocol.codec import decode_header
from ina.protocol.collective import CollectiveKind
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES, Kind, Shape
from tests.selection import LONG
from tests.worlds import collectives
from tests.worlds.collectives import FLOAT32, Step
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual.grove import HOP_NS, Grove, rough
from tests.worlds.virtual.trees import Node, deal, grown, racks

VALUES = 8


def star(workers: int) -> Node:
    return Node("s", tuple(range(workers)))


def run(grove: Grove, steps: Sequence[Step]) -> None:
    """All under way together; each rank submits them in their order."""
    done = len(grove.done[0])
    for rank in range(len(grove.cores)):
        for number, step in enumerate(steps, done + 1):
            grove.begin(rank, number, step.ins[rank], step.outs[rank], step.what)
    grove.run(done + len(steps))
    for step in steps:
        step.check()


@pytest.mark.parametrize("kind", list(CollectiveKind))
@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_each_kind_on_a_star(workers: int, kind: CollectiveKind) -> None:
    grove = Grove([star(workers)], [8], workers, VALUES)
    for elems in (1, VALUES, 3 * VALUES + 1, 40 * VALUES):
        for root in {0, workers - 1}:
            octets = [np.arange(4 * elems, dtype=np.uint8) + rank for rank in range(workers)]
            match kind:
                case CollectiveKind.ALL_GATHER:
                    step = collectives.gathered(octets)
                case CollectiveKind.BROADCAST:
                    step = collectives.broadcast(octets[root], workers, root)
                case CollectiveKind.BARRIER:
                    step = collectives.barrier(workers)
                case _:
                    shares = workers if kind is CollectiveKind.REDUCE_SCATTER else 1
                    parts = random_parts(FLOAT32, workers, shares * elems, elems)
                    at = root if kind.has_root else 0
                    step = collectives.reduced(kind, parts, VALUES, root=at)
            run(grove, [step])


@pytest.mark.parametrize("verify", list(VerifyMode))
@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(30 if LONG else 2))
def test_drawn_ones_in_racks(seed: int, loss: float, verify: VerifyMode) -> None:
    """Many under way together, some on trees that are too deep to say whose chunk it is."""
    rng = random.Random(f"{seed} {loss} {verify}")
    workers = rng.choice((1, 2, 3, 4, 6, 9))
    trees = rng.randint(1, 2)
    ranks = list(range(workers))
    grown_trees = [grown(rng, ranks, rng.randint(1, 3), name) for name in ("a", "b")[:trees]]
    lanes = 1 << rng.randint(trees - 1, 4)
    grove = Grove(
        grown_trees, deal(trees, lanes, rng), workers, VALUES,
        fate=rough(seed, loss, loss, 3 * HOP_NS), verify=verify,
        shares=[rng.randint(1, 3) for _ in ranks],
        first_seq=rng.choice((0, 2 * lanes * ((1 << 32) // (2 * lanes) - 1))),
    )  # fmt: skip
    for _ in range(3):
        run(grove, [collectives.drawn(rng, workers, VALUES, 30 * VALUES) for _ in range(6)])


@pytest.mark.parametrize(("workers", "sizes"), [(8, (3, 5)), (32, (4,) * 8), (6, (1, 1, 4))])
def test_racks_with_and_without_the_owner(workers: int, sizes: tuple[int, ...]) -> None:
    grove = Grove([racks(sizes)], [8], workers, VALUES)
    octets = np.random.default_rng(workers)
    run(grove, [
        collectives.gathered([octets.integers(0, 256, 500, np.uint8) for _ in range(workers)]),
        collectives.reduced(
            CollectiveKind.REDUCE_SCATTER, random_parts(INT32, workers, workers * 70), VALUES
        ),
        *(
            collectives.broadcast(octets.integers(0, 256, 300, np.uint8), workers, root)
            for root in (0, workers - 1)
        ),
    ])  # fmt: skip


def test_bytes_that_are_not_numbers_stay_as_they_are() -> None:
    """NaN with a payload, and each byte that a bool may be."""
    strange = np.array([0x7FC0_1234, 0xFF80_0001, 0x8000_0000, 2, 255], np.uint32)
    parts = [np.roll(strange, rank).view(np.uint8) for rank in range(3)]
    grove = Grove([star(3)], [4], 3, VALUES)
    run(grove, [collectives.gathered([np.tile(part, 50) for part in parts])])
    run(grove, [collectives.gathered(parts)])  # one packet


def traffic(grove: Grove, steps: Sequence[Step]) -> tuple[dict[str, int], set[int]]:
    """Bytes of payload by who sent and who got them; and the shapes of results."""
    counted: dict[str, int] = {}
    shapes = set()

    def fate(source: str, to: str, packet: bytes) -> list[int]:
        for key in (f"{source}>", f">{to}"):
            counted[key] = counted.get(key, 0) + len(packet)
        header = decode_header(packet)
        if header.kind is Kind.RESULT:
            shapes.add(header.shape)
        return [HOP_NS]

    grove.fate = fate
    run(grove, steps)
    return counted, shapes


@pytest.mark.parametrize("kind", [CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER])
def test_values_go_one_way(kind: CollectiveKind) -> None:
    """Of n parts one goes the one way at each rank, and n - 1 the other; the rest are headers."""
    workers, chunks, values = 4, 50, 64
    grove = Grove([star(workers)], [16], workers, values)
    if kind is CollectiveKind.ALL_GATHER:
        parts = [np.zeros(chunks * values * 4, np.uint8) for _ in range(workers)]
        step = collectives.gathered(parts)
    else:
        step = collectives.reduced(
            kind, random_parts(INT32, workers, workers * chunks * values), values
        )
    counted, shapes = traffic(grove, [step])
    whole, bare = HEADER_BYTES + values * VALUE_BYTES, HEADER_BYTES
    few, many = chunks * (whole + 3 * bare), chunks * (3 * whole + bare)
    up, down = (few, many) if kind is CollectiveKind.ALL_GATHER else (many, few)
    for rank in range(workers):
        assert (counted[f"rank{rank}>"], counted[f">rank{rank}"]) == (up, down)
    assert shapes == {Shape.GATHER if kind is CollectiveKind.ALL_GATHER else Shape.SCATTER}


def test_small_parts_are_gathered_by_one_packet() -> None:
    workers = 4
    grove = Grove([star(workers)], [8], workers, VALUES)
    parts = [np.full(VALUES, rank + 1, np.uint8) for rank in range(workers)]
    counted, shapes = traffic(grove, [collectives.gathered(parts)])
    assert counted["rank0>"] == HEADER_BYTES + VALUES * VALUE_BYTES
    assert shapes == {Shape.SUM}


def test_a_barrier_is_one_header() -> None:
    grove = Grove([racks((2, 2))], [8], 4, VALUES)
    counted, _ = traffic(grove, [collectives.barrier(4)])
    assert {counted[f"rank{rank}>"] for rank in range(4)} == {HEADER_BYTES}
    assert {counted[f">rank{rank}"] for rank in range(4)} == {HEADER_BYTES}


def test_a_gather_does_not_hold_up_what_comes_behind() -> None:
    """While both wait, each has half of the window."""
    workers, chunks = 3, 200
    grove = Grove([star(workers)], [32], workers, VALUES)
    order: list[int] = []

    def fate(_source: str, _to: str, packet: bytes) -> list[int]:
        order.append(decode_header(packet).shape)
        return [HOP_NS]

    grove.fate = fate
    octets = [np.zeros(chunks * VALUES * 4, np.uint8) for _ in range(workers)]
    sums = random_parts(INT32, workers, workers * chunks * VALUES)
    run(grove, [
        collectives.gathered(octets),
        collectives.reduced(CollectiveKind.REDUCE_SCATTER, sums, VALUES),
    ])  # fmt: skip
    middle = order[len(order) // 4 : 3 * len(order) // 4]
    share = middle.count(Shape.GATHER) / len(middle)
    assert 0.45 < share < 0.55
