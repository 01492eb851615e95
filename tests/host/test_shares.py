"""Workers that divide their lanes between cores: on the wire, and in the sums, nothing tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ina._native.congestion import Choice
from ina._native.host import WorkerCore
from ina.protocol.codec import decode, encode
from ina.protocol.collective import Collective
from ina.protocol.spec import Kind
from ina.testing import numerics
from ina.testing.frames import PAYLOAD_OFFSET
from tests.selection import examples
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual.cores import MS, SECOND, worker_config
from tests.worlds.virtual.star import ROUGH, Star, even, late, scattered

VALUES = 64
DTYPES = (INT32, *numerics.FLOATS)
FLOAT = np.dtype(np.float32)


@settings(max_examples=examples(200), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    shares=st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4),
    slots=st.sampled_from([2, 4, 16, 33]),
    lengths=st.one_of(
        st.lists(st.integers(0, 25 * VALUES), min_size=1, max_size=6),
        st.lists(st.sampled_from([40, 40, 72]), min_size=9, max_size=25),  # some are guessed
    ),
    loss=st.floats(0, 0.3),
    spread_ns=st.integers(0, 5_000_000),
    late_share=st.floats(0, 0.3),
)
def test_results_are_those_of_one_share(
    seed: int,
    shares: list[int],
    slots: int,
    lengths: list[int],
    loss: float,
    spread_ns: int,
    late_share: float,
) -> None:
    """Tensors of all types under way at once, some in place, under any schedule of packets."""
    workers = len(shares)
    shares = [min(count, slots // 2) for count in shares]
    way = scattered(loss, loss / 2, 1_000, 1_000 + spread_ns)
    back = late(late_share, loss, loss / 2)
    star = Star(workers, slots=slots, way=way, back=back, seed=seed, shares=shares)
    expected, outs = [], []
    for index, length in enumerate(lengths):
        dtype, op = DTYPES[(seed + index) % 4], ("sum", "avg")[index % 2]
        parts = random_parts(dtype, workers, length, seed + index)
        expected.append(numerics.all_reduce(parts, op, VALUES))
        outs.append([part if index % 3 else np.empty_like(part) for part in parts])
        for rank, part in enumerate(parts):
            star.submit(rank, index + 1, part, outs[-1][rank], op)
    star.run(len(lengths))
    for index, want in enumerate(expected):
        for rank in range(workers):
            assert numerics.same_bits(outs[index][rank], want), (index, rank)
    event(f"shares: {max(shares)}")
    event(f"guessed: {any(worker.counters.guessed_chunks for worker in star.workers)}")


def test_tensors_one_after_the_other_from_workers_that_divide_differently() -> None:
    star = Star(3, **ROUGH, seed=4, shares=[1, 2, 8])
    for turn in range(12):
        for dtype in DTYPES:
            parts = random_parts(dtype, 3, (300, 64 * 20 + 1)[turn % 2], seed=turn)
            want = numerics.all_reduce(parts, "sum", VALUES)
            assert all(numerics.same_bits(got, want) for got in star.all_reduce(parts))


def sent(shares: int, lengths: Sequence[int]) -> list[bytes]:
    """All packets of a lone worker whose tensors are all submitted before the first is answered."""
    star = Star(1, way=even(20_000), shares=[shares])  # nothing is overtaken
    found: list[bytes] = []

    def note(frame: bytes) -> bytes:
        found.append(frame[PAYLOAD_OFFSET:])
        return frame

    star.up[0].set_tap(note)
    for index, length in enumerate(lengths):
        (part,) = random_parts(DTYPES[(index + 1) % 4], 1, length, index)
        star.submit(0, index + 1, part, np.empty_like(part))
    star.run(len(lengths))
    return sorted(found)


@pytest.mark.parametrize("shares", [2, 4, 8])
def test_the_packets_are_those_of_one_share(shares: int) -> None:
    lengths = [1600, 24, 0, 72, 72, 72, 72, 328, 512, 56, 72, 72, 72, 1600, 72]
    packets = sent(1, lengths)
    assert sent(shares, lengths) == packets
    assert len(packets) > sum(-(-length // VALUES) for length in lengths)


@pytest.mark.parametrize("slots", [4, 16, 64])
@pytest.mark.parametrize("shares", [2, 4, 8])
def test_a_snapshot_of_the_lanes_is_that_of_one_share(slots: int, shares: int) -> None:
    shares = min(shares, slots // 2)
    tensors = [np.arange(elems, dtype=np.int32) for elems in (64 * 5, 64 * 9 + 1, 24, 24)]
    shown = []
    for count in (1, shares):
        # A window that waits for no pace: what is submitted leaves at once.
        star = Star(2, slots=slots, shares=[count, 1], window=Choice("fixed"))
        seen = []
        for tensor, part in enumerate(tensors[:3], start=1):
            star.submit(0, tensor, part, np.empty_like(part))
            seen.append(star.workers[0].lanes())
        star.run_until(7 * MS)
        seen.append(star.workers[0].lanes())
        for tensor, part in enumerate(tensors[:3], start=1):
            star.submit(1, tensor, part, np.empty_like(part))
        star.run(3)
        seen.append(star.workers[0].lanes())
        star.submit(0, 4, tensors[3], np.empty_like(tensors[3]))
        star.run_until(star.now_ns + 3)
        seen.append(star.workers[0].lanes())
        shown.append(
            [(s.seqs, s.waiting, s.in_flight, s.oldest_operation, s.oldest_waited_ns) for s in seen]
        )
        assert [s.in_flight > 0 for s in seen] == [True] * 4 + [False, True]
        assert [s.silent_ns for s in seen] == [0, 0, 0, 7 * MS, 0, 3]
    assert shown[0] == shown[1]
    assert len(shown[0][0][0]) == slots // 2


def test_each_share_has_memory_for_its_own_lanes_and_knows_no_others() -> None:
    core = WorkerCore(worker_config(0, 1, 16, 8, share=1, shares=4))
    assert (core.window, core.first_lane, core.lane_count) == (8, 2, 2)
    assert core.in_flight_limit == 2
    part = np.arange(8 * 8, dtype=np.int32)
    core.submit(1, part.ctypes.data, part.ctypes.data, Collective(0, part.size), 0)
    packets = core.poll_transmit(0)
    assert [decode(packet)[0].seq for packet in packets] == [2, 3]
    with pytest.raises(ValueError, match=r"lane must be 2\.\.3, got 1"):
        core.lane_result(1)
    with pytest.raises(ValueError, match="lane 4, sequence number 4: there is no such lane"):
        core.put_result(4, 4, bytes(32))
    (pending,) = core.pending()
    assert pending.undone == [(2, 4)]


def test_results_for_another_share_are_counted_and_ignored() -> None:
    cores = [WorkerCore(worker_config(0, 1, 16, 8, share=i, shares=2)) for i in range(2)]
    part = np.arange(8 * 8, dtype=np.int32)
    out = np.zeros_like(part)
    for core in cores:
        core.submit(1, part.ctypes.data, out.ctypes.data, Collective(0, part.size), 0)
    sent = [packet for core in cores for packet in core.poll_transmit(0)]
    seqs = []
    for packet in sent:
        header, values = decode(packet)
        seqs.append(header.seq)
        wrong = cores[0 if header.seq >= 4 else 1]
        wrong.on_result(encode(replace(header, kind=Kind.RESULT), values), 1)
    assert sorted(seqs) == list(range(8))
    assert [core.counters.mismatched for core in cores] == [4, 4]
    assert [core.counters.chunks_done for core in cores] == [0, 0]


def test_a_share_without_a_part_is_done_at_once() -> None:
    cores = [WorkerCore(worker_config(0, 1, 16, 8, share=i, shares=2)) for i in range(2)]
    part = np.arange(8, dtype=np.int32)
    for core in cores:
        core.submit(5, part.ctypes.data, part.ctypes.data, Collective(0, part.size), 0)
    assert [core.take_completions() for core in cores] == [[], [5]]
    assert cores[1].next_deadline_ns(0) is None
    assert cores[1].pending() == []
    assert [core.counters.tensors_submitted for core in cores] == [1, 1]


def test_what_the_other_shares_get_counts_as_progress() -> None:
    core = WorkerCore(worker_config(0, 1, 16, 8, stall_s=1.0, share=0, shares=2))
    part = np.arange(8, dtype=np.int32)
    core.submit(1, part.ctypes.data, part.ctypes.data, Collective(0, part.size), 0)
    assert core.poll_transmit(0)
    core.note_progress(SECOND // 2)
    core.poll_transmit(SECOND + 1)
    assert core.stall is None
    core.note_progress(0)  # it never goes back
    core.poll_transmit(SECOND * 3 // 2 + 1)
    assert core.stall is not None


@pytest.mark.parametrize(
    ("first_lane", "lanes", "why"),
    [
        (8, 1, "first_lane must be below W = 8, got 8"),
        (0, 9, "a core's lanes must be of one tree, from lane 0 on at most 8, got 9"),
        (6, 3, "a core's lanes must be of one tree, from lane 6 on at most 2, got 3"),
    ],
)
def test_shares_that_cannot_be(first_lane: int, lanes: int, why: str) -> None:
    config = worker_config(0, 1, 16, 8)
    config.first_lane, config.lanes = first_lane, lanes
    with pytest.raises(ValueError, match=why):
        WorkerCore(config)


def test_a_core_may_have_any_lanes_in_a_row() -> None:
    config = worker_config(0, 1, 16, 8)
    config.first_lane, config.lanes = 3, 5
    core = WorkerCore(config)
    assert (core.window, core.first_lane, core.lane_count) == (8, 3, 5)


def test_different_in_flight_limits_do_not_deadlock() -> None:
    for seed in range(20):
        way = scattered(loss=0.1, most_ns=3_000_000)
        star = Star(3, way=way, seed=seed, in_flight=[4, 1, 4], shares=[4, 1, 2])
        parts = random_parts(INT32, 3, 64 * 41, seed)
        for result in star.all_reduce(parts):
            assert numerics.same_bits(result, numerics.all_reduce(parts, "sum", 64))
