"""WorkerCore and the P4 program, over links that misbehave by a seed."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.protocol.coding import CODINGS, WHOLE
from ina.testing import numerics, packed
from tests.selection import examples
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual.star import ROUGH, Star, even, late, scattered

LENGTHS = (0, 1, 255, 256, 257, 1003)
VALUES = 64


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 32])
@pytest.mark.parametrize("length", LENGTHS)
def test_int32_sum_is_exact_and_wraps(workers: int, length: int) -> None:
    parts = random_parts(INT32, workers, length, seed=length)
    expected = numerics.all_reduce(parts, "sum", 64)
    for result in Star(workers).all_reduce(parts):
        assert numerics.same_bits(result, expected)


@pytest.mark.parametrize("op", ["sum", "avg"])
@pytest.mark.parametrize("workers", [1, 2, 3, 8, 32])
@pytest.mark.parametrize("dtype", numerics.FLOATS, ids=str)
def test_floats_keep_the_bound_and_agree_on_all_ranks(
    dtype: np.dtype[Any], workers: int, op: str
) -> None:
    star = Star(workers)
    for length in LENGTHS:
        parts = random_parts(dtype, workers, length, seed=length)
        results = star.all_reduce(parts, op)
        assert all(numerics.same_bits(result, results[0]) for result in results)
        assert numerics.same_bits(results[0], numerics.all_reduce(parts, op, 64))
        error = np.abs(results[0].astype(np.float64) - numerics.exact_result(parts, op))
        assert (error <= numerics.error_bound(parts, op, 64)).all()


@pytest.mark.parametrize("dtype", [INT32, *numerics.FLOATS], ids=str)
def test_memory_behind_a_tensor_is_not_touched(dtype: np.dtype[Any]) -> None:
    """What is asked for ahead of a scan lies partly where there is no memory."""
    length = 40 * 64 + 3
    page = mmap.PAGESIZE
    held = -(-length * dtype.itemsize // page) * page
    with mmap.mmap(-1, held + page) as memory:
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        libc = ctypes.CDLL(None, use_errno=True)
        behind = ctypes.c_void_p(address + held)
        assert libc.mprotect(behind, ctypes.c_size_t(page), 0) == 0, ctypes.get_errno()
        try:
            offset = held - length * dtype.itemsize
            part = np.frombuffer(memory, dtype, length, offset)
            part[:] = random_parts(dtype, 1, length, seed=7)[0]
            star = Star(1)
            star.submit(0, 1, part, part)
            expected = numerics.all_reduce([part.copy()], "sum", 64)
            star.run(1)
            assert numerics.same_bits(part, expected)
            del part, star
        finally:
            libc.mprotect(behind, ctypes.c_size_t(page), mmap.PROT_READ | mmap.PROT_WRITE)


def test_int32_average_truncates_toward_zero() -> None:
    parts = [np.array([7, -7, 8, -1], np.int32), np.array([0, 0, -1, 0], np.int32)]
    for result in Star(2).all_reduce(parts, "avg"):
        assert result.tolist() == [3, -3, 3, 0]


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("workers", [2, 8])
def test_loss_duplicates_and_reordering_change_nothing(workers: int, loss: float) -> None:
    way, back = scattered(loss, 0.05, most_ns=1_000_000), late(0.02, loss, 0.05)
    star = Star(workers, way=way, back=back, seed=int(loss * 100))
    for dtype in (INT32, np.dtype(np.float32)):
        parts = random_parts(dtype, workers, 5003, seed=workers)
        for result in star.all_reduce(parts):
            assert numerics.same_bits(result, numerics.all_reduce(parts, "sum", 64))
    assert sum(worker.counters.retransmissions for worker in star.workers) > 0


def test_32_workers_with_ten_percent_loss() -> None:
    star = Star(32, way=scattered(loss=0.1), seed=5)
    parts = random_parts(np.dtype(np.float32), 32, 1003, seed=0)
    for result in star.all_reduce(parts):
        assert numerics.same_bits(result, numerics.all_reduce(parts, "sum", 64))


@settings(max_examples=examples(400), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 5),
    slots=st.sampled_from([2, 3, 4, 16, 33]),
    lengths=st.lists(st.integers(0, 12 * VALUES), min_size=1, max_size=6),
    loss=st.floats(0, 0.3),
    duplication=st.floats(0, 0.3),
    spread_ns=st.integers(0, 5_000_000),
    late_share=st.floats(0, 0.3),
)
def test_results_do_not_depend_on_the_packets_schedule(
    seed: int,
    workers: int,
    slots: int,
    lengths: list[int],
    loss: float,
    duplication: float,
    spread_ns: int,
    late_share: float,
) -> None:
    """Tensors of all types and codings, queued at once, some in place, under any schedule."""
    way = scattered(loss, duplication, 1_000, 1_000 + spread_ns)
    back = late(late_share, loss, duplication)
    if seed % 2:
        way, back = back, way
    star = Star(workers, slots=slots, way=way, back=back, seed=seed)
    dtypes, codings = (INT32, *numerics.FLOATS), list(CODINGS.values())
    expected, outs = [], []
    for index, length in enumerate(lengths):
        dtype, op = dtypes[(seed + index) % 4], ("sum", "avg")[index % 2]
        parts = random_parts(dtype, workers, length, seed + index)
        coding = codings[seed // 8 % len(codings)] if (seed + index) % 2 else WHOLE
        expected.append(packed.all_reduce(parts, op, VALUES, coding, index + 1))
        outs.append([part if index % 3 else np.empty_like(part) for part in parts])
        for rank, part in enumerate(parts):
            star.submit(rank, index + 1, part, outs[-1][rank], op, coding)
    star.run(len(lengths))
    for index, want in enumerate(expected):
        for rank in range(workers):
            assert numerics.same_bits(outs[index][rank], want), (index, rank)


def test_workers_may_submit_at_different_times() -> None:
    star = Star(3, way=scattered(loss=0.02), seed=1)
    parts = random_parts(np.dtype(np.float32), 3, 700, seed=1)
    outs = [np.empty_like(part) for part in parts]
    for rank, part in enumerate(parts):
        star.run_until(rank * 500_000_000)
        star.submit(rank, 1, part, outs[rank])
    star.run(1)
    assert all(numerics.same_bits(out, numerics.all_reduce(parts, "sum", 64)) for out in outs)


def test_different_in_flight_limits_do_not_deadlock() -> None:
    for seed in range(20):
        way = scattered(loss=0.1, most_ns=3_000_000)
        star = Star(3, way=way, seed=seed, in_flight=[1, 2, 5])
        parts = random_parts(INT32, 3, 64 * 41, seed)
        for result in star.all_reduce(parts):
            assert numerics.same_bits(result, numerics.all_reduce(parts, "sum", 64))


def test_sequence_numbers_wrap_around() -> None:
    # 16 slots: the 32 numbers before 2^32 are used up after two rounds of each slot.
    star = Star(2, **ROUGH, seed=2, first_seq=2**32 - 32)
    for seed in range(3):
        parts = random_parts(np.dtype(np.float32), 2, 64 * 40, seed)
        for result in star.all_reduce(parts):
            assert numerics.same_bits(result, numerics.all_reduce(parts, "sum", 64))
    assert star.workers[0].counters.last_seq < 2**31


def test_non_finite_inputs_turn_their_block_into_nan_on_every_rank() -> None:
    workers, values = 3, 64
    parts = [np.ones(4 * values, np.float32) for _ in range(workers)]
    parts[1][5] = np.inf
    parts[2][2 * values + 1] = np.nan
    for result in Star(workers).all_reduce(parts):
        nan = np.isnan(result).reshape(4, values)
        assert nan[0].all()
        assert nan[2].all()
        assert (result.reshape(4, values)[[1, 3]] == workers).all()


@pytest.mark.parametrize("dtype", numerics.FLOATS, ids=str)
def test_sums_beyond_the_type_become_infinite(dtype: np.dtype[Any]) -> None:
    huge = {"float16": 65504.0, "float32": 2.0**128 - 2.0**104, "bfloat16": 2.0**128 - 2.0**120}
    largest = huge[dtype.name]
    parts = [np.array([largest, -largest, 1], dtype) for _ in range(3)]
    assert np.isfinite(parts[0].astype(np.float32)).all()
    for result in Star(3).all_reduce(parts):
        assert result[0] == np.inf
        assert result[1] == -np.inf


def test_zero_blocks_and_negative_zero_give_positive_zero() -> None:
    parts = [np.full(200, -0.0, np.float32) for _ in range(2)]
    for result in Star(2).all_reduce(parts):
        assert result.tobytes() == bytes(800)


def test_counts_are_those_of_a_network_without_loss() -> None:
    star = Star(2, slots=8, way=even(40_000))  # window 4
    parts = random_parts(np.dtype(np.float32), 2, 64 * 10, seed=0)
    star.all_reduce(parts)
    counters = star.workers[0].counters
    assert counters.chunks_done == 10
    assert counters.exponent_rounds == 4
    assert counters.packets_sent == counters.packets_received == 14
    assert counters.payload_bytes_sent == 14 * 32 + 10 * 64 * 4
    assert counters.retransmissions == counters.duplicates == counters.mismatched == 0
