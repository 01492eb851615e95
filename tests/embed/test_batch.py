"""Batches of look-ups, as a module has them: what is asked for, and what comes of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ina.embed.service import Door, Service
from ina.extension.embed import Batch, GroupConfig, Optimizer, Rule, TableSpec

ROWS, DIM = 12, 3
SPECS = [TableSpec(rows=ROWS, dim=DIM) for _ in range(3)]
START = np.arange(ROWS * DIM, dtype=np.float32).reshape(ROWS, DIM)
Floats = NDArray[np.float32]
Bags = tuple[NDArray[np.int64], NDArray[np.int64], Floats | None, bool, bool]
"""Ids, offsets, weights, whether the mean is meant, whether by row."""


def batch_of(tables: list[Bags]) -> Batch:
    return Batch(
        SPECS,
        [
            (
                *("t", number, ids.size, ids.ctypes.data, offsets.size, offsets.ctypes.data),
                *(0 if weights is None else weights.ctypes.data, is_mean, by_row),
            )
            for number, (ids, offsets, weights, is_mean, by_row) in enumerate(tables)
        ],
    )


@st.composite
def bags(draw: st.DrawFn) -> Bags:
    counts = draw(st.lists(st.integers(0, 3), max_size=9) | st.lists(st.just(1), max_size=9))
    total = sum(counts)
    ids = draw(st.lists(st.integers(0, ROWS - 1), min_size=total, max_size=total))
    weights = draw(
        st.none() | st.lists(st.sampled_from([0.5, 1, -2]), min_size=total, max_size=total)
    )
    ends = np.cumsum(np.array(counts, np.int64))
    return (
        np.array(ids, np.int64),
        (ends - np.array(counts, np.int64)).astype(np.int64),
        None if weights is None else np.array(weights, np.float32),
        draw(st.booleans()) and weights is None,
        draw(st.booleans()),
    )


def matrix_of(table: Bags) -> Floats:
    """Of each bag how much of each row is in it: (bags, ROWS)."""
    ids, offsets, weights, is_mean, _ = table
    ends = np.append(offsets[1:], ids.size)
    out = np.zeros((offsets.size, ROWS), np.float32)
    for bag, (start, end) in enumerate(zip(offsets, ends, strict=False)):
        for i in range(start, end):
            out[bag, ids[i]] += 1 if weights is None else weights[i]
        if is_mean and end > start:
            out[bag] /= np.float32(end - start)
    return out


@given(tables=st.lists(bags(), min_size=1, max_size=3))
def test_vectors_and_gradients_are_those_of_a_matrix(tables: list[Bags]) -> None:
    door = Door("127.0.0.1")
    config = GroupConfig(key=3, tables=SPECS, optimizer=Optimizer(rule=Rule.SGD))
    service = Service(door, config, [door.peer])
    for number in range(len(SPECS)):
        service.write(number, START)
    batch = batch_of(tables)
    came = [
        np.empty((batch.asked(i) if is_rows(batch, i) else table[1].size, DIM), np.float32)
        for i, table in enumerate(tables)
    ]
    service.look_up_batch(0, batch).take([one.ctypes.data for one in came])
    gradients = []
    for i, table in enumerate(tables):
        right = matrix_of(table) @ START
        assert batch.is_by_row(i) or not table[4]
        if is_rows(batch, i):
            places = np.empty(table[0].size, np.int64)
            batch.read_places(i, places.ctypes.data)
            assert np.array_equal(came[i][places], START[table[0]])
            assert len(came[i]) == np.unique(table[0]).size
        else:
            assert np.allclose(came[i], right, rtol=1e-6)
        gradients.append(np.full((table[1].size, DIM), i + 1.0, np.float32))
    service.native.add_gradients_of_batch(0, batch, [one.ctypes.data for one in gradients])
    service.end_step(0, 1.0)
    service.wait_for_version(1)
    for i, table in enumerate(tables):
        changed = START - service.read(i)[0]
        assert np.allclose(changed, matrix_of(table).T @ gradients[i], rtol=1e-5, atol=1e-5)
    service.close()


def is_rows(batch: Batch, i: int) -> bool:
    return batch.is_by_row(i) and not batch.is_plain(i)


def test_the_way_that_brings_fewer_vectors_is_taken() -> None:
    pairs = np.array([0, 1, 1, 0, 0, 1], np.int64)
    many = np.arange(6, dtype=np.int64)
    offsets = np.array([0, 2, 4], np.int64)
    batch = batch_of([(pairs, offsets, None, False, False), (many, offsets, None, False, False)])
    assert [(batch.is_by_row(i), batch.asked(i)) for i in range(2)] == [(True, 2), (False, 3)]


@pytest.mark.parametrize(
    ("ids", "offsets", "error", "said"),
    [
        ([0, ROWS], [0], IndexError, f"table 't': row {ROWS}: it has rows 0 to {ROWS - 1}"),
        ([-1], [0], IndexError, "row -1"),
        ([2**32], [0], IndexError, f"row {2**32}"),
        ([0, 1], [1], ValueError, "the first of its offsets is 1, want 0"),
        ([0, 1], [], ValueError, "the first of its offsets is 2, want 0"),
        ([0, 1], [0, 2, 1], ValueError, "its offsets fall, or go beyond the 2 rows"),
        ([0, 1], [0, 3], ValueError, "its offsets fall, or go beyond"),
    ],
)
def test_what_makes_no_sense_is_refused(
    ids: list[int], offsets: list[int], error: type[Exception], said: str
) -> None:
    table: Bags = (np.array(ids, np.int64), np.array(offsets, np.int64), None, False, False)
    with pytest.raises(error, match=said):
        batch_of([table])
