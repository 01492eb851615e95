"""The slot machine case by case; test_model_check.py searches all interleavings."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.protocol.slot_model import Contribution, Outcome, Slot, Tag, add_int32
from ina.protocol.spec import Flag

TAG = Tag(epoch=7, seq=100)


def part(worker: int, value: int = 0, tag: Tag = TAG) -> Contribution:
    return Contribution(tag, 1 << worker, values=(value,))


def slot() -> Slot:
    return Slot(values=(0,))


def test_a_round_of_three_then_replays() -> None:
    pool = slot()
    outcomes = [pool.contribute(part(worker, 10**worker), 0b111) for worker in (2, 0, 2, 1, 0)]
    assert outcomes == [
        Outcome.ABSORBED,
        Outcome.ABSORBED,
        Outcome.DUPLICATE,
        Outcome.RESULT,
        Outcome.REPLAY,
    ]
    assert pool == Slot(TAG, 0b111, values=(111,))


def test_one_worker_completes_at_once() -> None:
    assert slot().contribute(part(0, 5), 0b1) is Outcome.RESULT


@pytest.mark.parametrize(
    ("tag", "outcome"),
    [
        (Tag(7, 101), Outcome.ABSORBED),
        (Tag(7, 99), Outcome.STALE),
        (Tag(7, 100 + 2**31 - 1), Outcome.ABSORBED),
        (Tag(7, 100 + 2**31), Outcome.STALE),
        (Tag(8, 0), Outcome.ABSORBED),
        (Tag(6, 2**30), Outcome.STALE),
        (Tag(6, 100), Outcome.STALE),
    ],
)
def test_order_of_tags(tag: Tag, outcome: Outcome) -> None:
    pool = slot()
    pool.contribute(part(0, 1), 0b11)
    before = replace(pool)
    assert pool.contribute(part(1, 2, tag), 0b11) is outcome
    if outcome is Outcome.STALE:
        assert pool == before
    else:
        assert pool == Slot(tag, 0b10, values=(2,))


def test_sequence_numbers_wrap() -> None:
    pool = slot()
    pool.contribute(part(0, 1, Tag(7, 2**32 - 1)), 0b11)
    assert pool.contribute(part(0, 1, Tag(7, 1)), 0b11) is Outcome.ABSORBED
    assert pool.owner.seq == 1


def test_flags_and_exponents_are_collected_and_not_inherited() -> None:
    pool = slot()
    pool.contribute(replace(part(0), flags=Flag.ECN | Flag.RESEND, next_exponent=9), 0b11)
    pool.contribute(replace(part(1), flags=Flag.NON_FINITE, next_exponent=4), 0b11)
    assert pool.flags == Flag.ECN | Flag.NON_FINITE
    assert pool.next_exponent == 9
    pool.contribute(part(0, tag=Tag(7, 102)), 0b11)
    assert pool.flags == Flag(0)
    assert pool.next_exponent == 0


def test_digests_are_added_once_each_and_not_inherited() -> None:
    pool = slot()
    for worker, digest in ((0, 0xFFFF), (0, 0xFFFF), (1, 3), (1, 3)):
        pool.contribute(replace(part(worker), digest=digest), 0b11)
    assert pool.digest == 2
    pool.contribute(replace(part(1, tag=Tag(7, 99)), digest=1), 0b11)
    assert pool.digest == 2
    pool.contribute(replace(part(0, tag=Tag(7, 102)), digest=0x8000), 0b11)
    assert pool.digest == 0x8000


def test_a_round_that_begins_without_values_begins_at_zero() -> None:
    pool = slot()
    pool.contribute(part(0, 5), 0b1)
    only = Contribution(Tag(7, 102), 0b1, next_exponent=3)
    assert pool.contribute(only, 0b11) is Outcome.ABSORBED
    assert pool.contribute(part(1, 8, tag=Tag(7, 102)), 0b11) is Outcome.RESULT
    assert pool.values == (8,)


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
