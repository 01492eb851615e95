"""Workers below trees of switches: sums, slots and numbers on the wire, and what a hop may lose."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina._native import quantize
from ina._native.host import Tree, VerifyMode, WorkerConfig, WorkerCore
from ina.protocol.codec import decode, encode
from ina.protocol.collective import Collective
from ina.protocol.spec import Flag, Kind, path_of
from ina.testing import numerics
from tests.selection import LONG, examples
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual.cores import EPOCH, MS, Array, worker_config
from tests.worlds.virtual.grove import HOP_NS, Grove, rough, unharmed
from tests.worlds.virtual.trees import Node, deal, grown, racks

VALUES = 8
DTYPES = (INT32, *numerics.FLOATS)
MODES = (VerifyMode.OFF, VerifyMode.ACCIDENTS, VerifyMode.KEYED)
FLOAT32 = np.dtype(np.float32)


def check(grove: Grove, parts: list[Array], op: str = "sum") -> None:
    """The same bits on all ranks, and those of integers: the specification's."""
    want = numerics.all_reduce(parts, op, grove.values)
    for rank, got in enumerate(grove.all_reduce(parts, op)):
        assert numerics.same_bits(got, want), rank
    if parts[0].dtype != INT32:
        exact = numerics.exact_result(parts, op)
        assert (np.abs(want - exact) <= numerics.error_bound(parts, op, grove.values)).all()


@pytest.mark.parametrize("seed", range(100 if LONG else 40))
def test_any_tree_sums_as_one_switch_does(seed: int) -> None:
    """1 to 32 ranks, one or two trees of one to three levels, each hop with losses of its own."""
    rng = random.Random(seed)
    workers = rng.choice((1, 2, 3, 5, 8, 13, 32))
    trees = [
        grown(rng, rng.sample(range(workers), workers), rng.randint(1, 3), f"t{number}")
        for number in range(rng.choice((1, 1, 2)))
    ]
    lanes = deal(len(trees), rng.choice((2, 4, 8)), rng)
    grove = Grove(
        trees, lanes, workers, VALUES,
        shares=[rng.choice((1, 2, 3)) for _ in range(workers)],
        fate=rough(
            seed, rng.choice((0, 0.02, 0.1)), rng.choice((0, 0.05)), rng.choice((0, 3 * MS))
        ),
        verify=rng.choice(MODES),
        first_seq=rng.choice((0, 2**32 - 2 * sum(lanes))),
    )  # fmt: skip
    for turn in range(2):
        dtype = DTYPES[(seed + turn) % 4]
        parts = random_parts(dtype, workers, rng.choice((1, 40, 8 * 13 + 3)), seed + turn)
        check(grove, parts, rng.choice(("sum", "avg")))


def test_every_single_loss_on_every_hop_is_mended() -> None:
    """Two racks of two, three levels: the n-th packet of all is lost, for each n."""
    shape = Node("root", (Node("mid", (Node("rack0", (0, 1)), 2)), 3))
    parts = [np.arange(3 * VALUES, dtype=np.float32) * (rank + 1) for rank in range(4)]
    hops: list[tuple[str, str]] = []
    lost = 0

    def fate(source: str, to: str, _: bytes) -> list[int]:
        hops.append((source, to))
        return [] if len(hops) == lost else [HOP_NS]

    check(Grove([shape], [2], 4, VALUES, fate=fate), parts)
    assert len(set(hops)) == 2 * 6  # each way of each link
    for lost in range(1, len(hops) + 1):
        hops.clear()
        check(Grove([shape], [2], 4, VALUES, fate=fate), parts)
        assert len(hops) >= lost


@pytest.mark.parametrize("workers", [64, pytest.param(300, marks=pytest.mark.long)])
def test_many_ranks(workers: int) -> None:
    sizes = [32] * (workers // 32) + [workers % 32] * (workers % 32 > 0)
    grove = Grove(
        [racks(sizes, "spine0"), racks(sizes, "spine1")], [3, 1], workers, VALUES,
        fate=rough(workers, 0.01, 0.01, MS), verify=VerifyMode.KEYED,
    )  # fmt: skip
    for dtype in (INT32, FLOAT32):
        check(grove, random_parts(dtype, workers, 5 * VALUES - 1, workers))


@pytest.mark.parametrize(
    ("workers", "sign"),
    itertools.product([1024, 1023, 513, 512, 256, 255], [1, -1])
    if LONG
    else [(1024, 1), (1023, -1), (513, 1), (512, -1), (256, 1), (255, -1)],
)
def test_a_sum_of_extremes_never_leaves_int32(workers: int, sign: int) -> None:
    """Each rank has the largest float32 below a power of two; rounded it may be that power."""
    sizes = [32] * (workers // 32) + [workers % 32] * (workers % 32 > 0)
    largest = np.nextafter(np.float32(2), np.float32(0))
    grove = Grove([racks(sizes)], [1], workers, 1)
    outs = grove.all_reduce([np.full(1, sign * largest, np.float32) for _ in range(workers)])
    bound = numerics.error_bound([np.full(1, largest)] * workers, "sum", 1)[0]
    assert len({out.tobytes() for out in outs}) == 1
    assert abs(float(outs[0][0]) - sign * workers * float(largest)) <= bound


@settings(max_examples=examples(300), deadline=None)
@given(
    workers=st.integers(1, 1024), exponent=st.integers(32, 255), dtype=st.sampled_from(DTYPES[1:])
)
def test_any_number_of_the_largest_values_fits(
    workers: int, exponent: int, dtype: np.dtype[np.float32]
) -> None:
    bits = numerics.PRECISION[dtype][0]
    largest = float((2**bits - 1) / 2**bits * 2.0 ** (exponent - 127))  # below 2^E
    q = round(largest * quantize.block_scale(exponent, workers))
    assert q * workers < 2**31
    assert -q * workers >= -(2**31)
    assert quantize.block_scale(exponent, workers) == numerics.scale(exponent, workers)
    assert 2 * (q + 1) * workers >= 2**31 or bits < 24  # and no bit is given away


def test_packets_carry_the_numbers_of_the_tree_that_their_lane_is_of() -> None:
    """Two trees that share the rack's switch, 5 and 3 lanes: two jobs there, slots from 0 each."""
    seen: dict[tuple[int, int], set[int]] = {}

    def fate(source: str, to: str, packet: bytes) -> list[int]:
        header, _ = decode(packet)
        if source == "rank4":
            lane = header.seq % 8
            job, first, lanes = (7, 0, 5) if lane < 5 else (8, 5, 3)
            assert to == "rack1"
            assert (header.job, header.worker, header.contributors) == (job, 1, 0b10)
            assert header.path == path_of([1, 1], [2, 1])
            assert header.level == header.shape == 0
            assert header.slot == (header.seq // 8 % 2) * lanes + lane - first
            seen.setdefault((job, lanes), set()).add(header.slot)
        return [HOP_NS]

    grove = Grove([racks([3, 2], "a"), racks([3, 2], "b")], [5, 3], 5, VALUES, fate=fate)
    check(grove, random_parts(INT32, 5, 40 * VALUES, 1))
    assert seen == {(7, 5): set(range(10)), (8, 3): set(range(6))}
    assert [job.first_slot for job in grove.forest.switches["rack1"].jobs.values()] == [0, 10]
    assert sorted(grove.forest.nodes()) == ["a", "b", "rack0", "rack1"]


def test_a_late_rank_costs_nobody_a_loss_and_replays_come_to_who_asks() -> None:
    replays: list[tuple[str, str]] = []

    def fate(source: str, to: str, packet: bytes) -> list[int]:
        if decode(packet)[0].flags & Flag.REPLAY:
            replays.append((source, to))
        if to == "rank1" and not replays and source == "rack0":
            replays.append(("lost", to))
            return []
        return unharmed(source, to, packet)

    grove = Grove([racks([2, 1])], [1], 3, VALUES, fate=fate)
    check(grove, random_parts(INT32, 3, VALUES, 1))
    assert replays == [("lost", "rank1"), ("root", "rack0"), ("rack0", "rank1")]
    for core, losses in zip((cores[0] for cores in grove.cores), (0, 1, 0), strict=True):
        core.settle_resends(grove.now_ns + 10**12)
        assert core.counters.losses == losses


def two_trees(rank: int = 1) -> WorkerConfig:
    config = worker_config(rank, 40, 16, 8)
    config.trees = [
        Tree(job=3, worker=5, path=path_of([2, 5]), expected_bitmap=0b111, first_lane=0, lanes=5),
        Tree(job=9, worker=6, path=path_of([0, 6]), expected_bitmap=0b11, first_lane=5, lanes=3),
    ]
    config.lanes = 5
    return config


def test_results_must_be_of_the_own_tree_and_whole_at_its_root() -> None:
    core = WorkerCore(two_trees())
    part, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    core.submit(1, part.ctypes.data, out.ctypes.data, Collective(0, 8), 0)
    (packet,) = core.poll_transmit(0)
    header, values = decode(packet)
    digest = 40 * header.digest % 2**16
    right = replace(header, kind=Kind.RESULT, contributors=0b111, digest=digest)
    wrong = {
        "foreign": [replace(right, job=9), replace(right, worker=1), replace(right, worker=6)],
        "mismatched": [
            replace(right, contributors=0b11),
            replace(right, contributors=0xFFFFFFFF),
            replace(right, slot=5),
        ],
    }
    for counter, results in wrong.items():
        for result in results:
            core.on_result(encode(result, values), 0)
        assert getattr(core.counters, counter) == len(results)
    core.on_result(encode(replace(right, flags=Flag.REPLAY), values), 0)
    assert core.take_completions() == [1]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda c, t: setattr(t[1], "first_lane", 4), "first_lane must be 5, got 4"),
        (lambda c, t: setattr(t[1], "lanes", 4), "lanes must be 1..3, got 4"),
        (lambda c, t: setattr(t[1], "lanes", 2), "trees must have W = 8 lanes together, got 7"),
        (lambda c, t: setattr(t[0], "worker", 32), r"worker must be 0..31, got 32"),
        (lambda c, t: setattr(t[0], "path", 1 << 24), "path must have 24 bits, got 16777216"),
        (lambda c, t: setattr(t[0], "expected_bitmap", 0), "must not be empty, got 0"),
        (lambda c, t: setattr(t[0], "owners", [0] * 39), "none or world_size = 40, got 39"),
        (lambda c, t: setattr(t[0], "owners", [4096] * 40), "must have 12 bits, got 4096"),
        (
            lambda c, t: setattr(t[0], "owners", [8] * 40),
            f"must have its path {path_of([2, 5])} for rank 1, got 8",
        ),
        (lambda c, t: t.clear(), r"world_size without trees must be 1..32, got 40"),
        (lambda c, t: setattr(c, "lanes", 6), "from lane 0 on at most 5, got 6"),
        (lambda c, t: setattr(c, "world_size", 1025), r"world_size must be 1..1024, got 1025"),
    ],
)
def test_places_that_cannot_be(change: object, why: str) -> None:
    config = two_trees()
    trees = config.trees
    change(config, trees)  # type: ignore[operator]
    config.trees = trees
    with pytest.raises(ValueError, match=why):
        WorkerCore(config)


def test_one_tree_is_as_one_switch() -> None:
    """The same packets, whether a ticket names the only switch's tree or not."""
    packets = []
    for trees in (
        (),
        (Tree(job=7, worker=2, path=path_of([2], [2]), expected_bitmap=7, first_lane=0, lanes=8),),
    ):
        core = WorkerCore(worker_config(2, 3, 16, 8, trees=trees))
        part = np.arange(30 * 8, dtype=np.int32)
        core.submit(1, part.ctypes.data, part.ctypes.data, Collective(0, part.size), 0)
        packets.append(core.poll_transmit(0))
        assert len(packets[-1]) == 8
    assert packets[0] == packets[1]
    assert decode(packets[0][0])[0].epoch == EPOCH % 2**16
