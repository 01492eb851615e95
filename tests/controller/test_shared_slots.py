"""Arcs of slots that jobs share: they overlap as little, and as evenly, as can be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller.memory import SharedSlots
from ina.controller.memory.allocators import least_shared
from ina.modes.patience import STEPS, Patience
from ina.trees.slots import SlotRange
from tests.selection import examples


def cost(arcs: list[range], own: range) -> tuple[int, int]:
    """How many slots it shares, and with how many jobs at most one of them."""
    depths = [sum(slot in arc for arc in arcs) for slot in own]
    return sum(depths), max(depths, default=0)


@settings(max_examples=examples(100))
@given(data=st.data(), total=st.integers(1, 24))
def test_no_other_place_is_better(data: st.DataObject, total: int) -> None:
    lengths = st.integers(0, total)
    arcs = []
    for _ in range(data.draw(st.integers(0, 5))):
        length = data.draw(lengths)
        start = data.draw(st.integers(0, total - length))
        arcs.append(range(start, start + length))
    slots = data.draw(lengths)
    first = least_shared(total, slots, arcs)
    assert 0 <= first <= total - slots
    found = cost(arcs, range(first, first + slots))
    others = (range(start, start + slots) for start in range(total - slots + 1))
    assert found == min(cost(arcs, other) for other in others)


def test_jobs_get_arcs_of_their_own_while_there_is_room_and_share_evenly_then() -> None:
    slots = SharedSlots(100, 16)
    taken = [slots.take(32, 8) for _ in range(5)]
    assert [(it.first, it.slots, it.reserved) for it in taken] == [
        (100, 32, 8), (108, 32, 8), (100, 32, 8), (108, 32, 8), (100, 32, 8)
    ]  # fmt: skip
    assert slots.used() == 16
    slots.give_back(taken[0])
    slots.give_back(taken[2])
    slots.give_back(taken[4])
    assert slots.used() == 8
    assert slots.take(64, 32) == SlotRange(100, 64, 16)  # no more than there are


def test_a_job_without_a_slot_to_claim_has_an_empty_arc() -> None:
    slots = SharedSlots(4, 4)
    assert slots.take(16, 0).reserved == 0
    assert slots.used() == 0


def test_what_is_not_taken_cannot_be_given_back() -> None:
    with pytest.raises(ValueError, match="not in list"):
        SharedSlots(0, 4).give_back(SlotRange(0, 4, 2))


@settings(max_examples=examples(100))
@given(st.integers(-3, 9), st.integers(-3, 9), st.integers(1, 10**6))
def test_the_more_important_wait_less(one: int, other: int, age_us: int) -> None:
    mine, its = Patience.of(one, age_us), Patience.of(other, age_us)
    levels = min(max(one, 0), STEPS) - min(max(other, 0), STEPS)
    wanted = age_us * (STEPS - levels) / STEPS
    assert abs(mine.towards(its) - wanted) <= 1
    assert (mine.age_us >= 0, mine.lead_us >= 0) == (True, True)
