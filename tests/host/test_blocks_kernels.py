"""Blocks that are not zero: the native kernels against NumPy, and that ranks agree by counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ina.host.sparse import kernels
from ina.host.sparse.agreement import counter_bits
from ina.host.sparse.kernels import Others
from ina.testing import numerics
from tests.selection import examples
from tests.worlds.parts import INT32

Array = NDArray[Any]
DTYPES = (INT32, *numerics.FLOATS)

shapes = st.tuples(
    st.sampled_from(DTYPES), st.integers(0, 3000), st.sampled_from([1, 2, 3, 7, 64, 360, 1000]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip


def drawn(dtype: np.dtype[Any], size: int, seed: int) -> Array:
    """Mostly zeros of either sign; some values, among them the smallest, NaN and Inf."""
    rng = np.random.default_rng(seed)
    array = np.zeros(size, dtype)
    if dtype == INT32:
        some = rng.integers(-(2**31), 2**31, size, dtype=np.int64).astype(np.int32)
    else:
        smallest = np.nextafter(np.zeros(1, dtype), np.ones(1, dtype))[0]
        some = rng.choice(np.array([1.5, -3, np.nan, np.inf, smallest], dtype), size)
        array[rng.random(size) < rng.choice([0, 0.01, 0.5])] = -0.0
    chosen = rng.random(size) < rng.choice([0, 0.0005, 0.01, 0.5])
    array[chosen] = some[chosen]
    return array


def cut(array: Array, block_elems: int) -> list[Array]:
    return [array[at : at + block_elems] for at in range(0, array.size, block_elems)]


def mark(block: Array) -> int:
    if (block != 0).any():  # NaN is not 0
        return 1
    return 2 if block.dtype != INT32 and np.signbit(block.astype(np.float32)).any() else 0


@settings(max_examples=examples(400), deadline=None)
@given(shapes)
def test_blocks_are_marked_gathered_and_spread_as_numpy_does(
    shape: tuple[np.dtype[Any], int, int, int],
) -> None:
    dtype, size, block_elems, seed = shape
    # Not aligned to more than a value, as a view of something may be.
    array = drawn(dtype, size + 1, seed)[1:]
    blocks = cut(array, block_elems)
    marks, own = kernels.mark(array, block_elems)
    assert marks.tolist() == [mark(block) for block in blocks]
    assert own == (marks == 1).sum()
    rng = np.random.default_rng(seed)
    which = np.flatnonzero((marks == 1) | (rng.random(marks.size) < 0.2)).astype(np.int64)
    compact = kernels.gather(array, block_elems, which)
    assert numerics.same_bits(
        compact, np.concatenate([np.zeros(0, dtype), *(blocks[i] for i in which)])
    )
    expected = np.zeros(size, dtype)
    for i in which:
        expected[i * block_elems :][:block_elems] = blocks[i]
    for others, out in (
        (Others.STAY, np.zeros(size, dtype)),
        (Others.CLEAR, np.ones(size, dtype)),
        (Others.BY_MARK, array.copy()),
    ):
        kernels.spread(compact, block_elems, which, out, others, marks)
        assert numerics.same_bits(out, expected)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.integers(1, 1024), st.integers(0, 300), st.sampled_from([0.0, 0.02, 0.5, 1.0]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_counters_of_all_ranks_have_room_and_say_what_is_marked(
    workers: int, blocks: int, share: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    bits = counter_bits(workers)
    assert 2**bits > workers
    total = np.zeros(-(-blocks // (32 // bits)), np.int64)
    counts = np.zeros(blocks, np.int64)
    for rank in range(min(workers, 40)):
        marks = (rng.random(blocks) < share).astype(np.uint8)
        marks[(marks == 0) & (rng.random(blocks) < 0.5)] = 2
        times = 1 if rank else workers - min(workers, 40) + 1  # so that all are there
        words = kernels.pack(marks, bits)
        assert words.size == total.size
        total += times * words.view(np.uint32).astype(np.int64)
        counts += times * (marks == 1)
    assert total.max(initial=0) < 2**32  # no counter carries out of its word
    summed = total.astype(np.uint32).view(np.int32)
    assert kernels.marked(summed, blocks, bits).tolist() == np.flatnonzero(counts).tolist()


def test_what_a_counter_takes() -> None:
    assert [counter_bits(n) for n in (1, 2, 3, 4, 7, 8, 15, 16, 1023, 1024)] == [
        *(1, 2, 2, 3, 3, 4, 4, 5, 10, 11)
    ]


@pytest.mark.parametrize("blocks", [0, 1, 1023, 1024, 1025, 5000])
def test_groups_of_blocks_are_marked(blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    marks = rng.choice(np.array([0, 1, 2], np.uint8), blocks, p=[0.5, 0.0005, 0.4995])
    expected = [int((group == 1).any()) for group in cut(marks, 1024)]
    assert kernels.mark_groups(marks, 1024).tolist() == expected


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from(DTYPES), st.integers(0, 60), st.integers(0, 9), st.integers(0, 2**32 - 1)
)  # fmt: skip
def test_rows_are_spread_among_those_of_all(
    dtype: np.dtype[Any], count: int, row_elems: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    own = np.flatnonzero(rng.random(count) < 0.3).astype(np.int64)
    all_ = np.union1d(own, np.flatnonzero(rng.random(count) < 0.3)).astype(np.int64)
    rows = rng.integers(-100, 100, (own.size, row_elems)).astype(dtype)
    dense = np.zeros((count, row_elems), dtype)
    dense[own] = rows
    assert numerics.same_bits(kernels.spread_rows(rows, own, all_), dense[all_])
