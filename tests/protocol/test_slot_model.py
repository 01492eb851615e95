"""What holds of any numbers in a slot. Its rows are conformance cases, which the model runs too
(ina/testing/cases/slot_rows.py); test_model_check.py searches all interleavings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ina.protocol.slot_model import Contribution, Slot, Tag, add_int32

TAG = Tag(epoch=7, seq=100)


def part(worker: int, value: int = 0, tag: Tag = TAG) -> Contribution:
    return Contribution(tag, 1 << worker, values=(value,))


def slot() -> Slot:
    return Slot(values=(0,))


int32s = st.integers(-(2**31), 2**31 - 1)


@given(int32s, int32s)
def test_addition_wraps_like_int32(left: int, right: int) -> None:
    (total,) = add_int32((left,), (right,))
    assert -(2**31) <= total < 2**31
    assert (total - left - right) % 2**32 == 0


@given(
    st.permutations(range(4)),
    st.lists(st.integers(0, 3), max_size=8),
    st.lists(int32s, min_size=4, max_size=4),
)
def test_order_and_repetition_do_not_change_the_sum(
    order: list[int], repeats: list[int], numbers: list[int]
) -> None:
    pool, straight = slot(), slot()
    for worker in range(4):
        straight.contribute(part(worker, numbers[worker]), 0b1111)
    for worker in order:
        pool.contribute(part(worker, numbers[worker]), 0b1111)
        for again in repeats:
            if pool.bitmap >> again & 1:
                pool.contribute(part(again, numbers[again]), 0b1111)
    assert pool == straight
