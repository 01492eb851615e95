"""Slot ranges: they never overlap, and what is given back can be had again."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ina.controller.errors import JobRequestError, NoRoomError
from ina.controller.memory import SlotRange, StaticPool


class Pool(RuleBasedStateMachine):
    @initialize(total=st.integers(2, 40), half=st.integers(1, 8))
    def start(self, total: int, half: int) -> None:
        self.range_slots = min(2 * half, total - total % 2)
        self.pool = StaticPool(total, self.range_slots)
        self.taken: list[SlotRange] = []

    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        wanted = data.draw(st.integers(0, self.range_slots // 2)) * 2
        if len(self.taken) == self.pool.total // self.range_slots:
            with pytest.raises(NoRoomError, match=f"{self.pool.total}"):
                self.pool.take("j", wanted)
            return
        taken = self.pool.take("j", wanted)
        assert taken.slots == (wanted or self.range_slots)
        self.taken.append(taken)

    @precondition(lambda self: bool(getattr(self, "taken", [])))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.taken) - 1))
        self.pool.give_back(self.taken.pop(index))

    @invariant()
    def ranges_are_disjoint_and_inside(self) -> None:
        if not hasattr(self, "pool"):
            return
        slots = [
            slot for taken in self.taken for slot in range(taken.first, taken.first + taken.slots)
        ]
        assert len(slots) == len(set(slots))
        assert all(0 <= slot < self.pool.total for slot in slots)
        assert self.pool.used() == len(self.taken) * self.range_slots


TestPool = Pool.TestCase


def test_refusals_say_the_numbers() -> None:
    pool = StaticPool(1024, 512)
    with pytest.raises(JobRequestError, match=r"'a': 514 slots.*at most 512"):
        pool.take("a", 514)
    with pytest.raises(JobRequestError, match="3 slots: not an even number"):
        pool.take("a", 3)
    pool.take("a", 0)
    pool.take("b", 2)
    with pytest.raises(NoRoomError, match=r"'c': no slots left: all 2 ranges of 512 slots"):
        pool.take("c", 2)


@pytest.mark.parametrize("slots", [0, 1, 7, 66])
def test_a_range_that_cannot_be_is_refused(slots: int) -> None:
    with pytest.raises(JobRequestError, match="even number"):
        StaticPool(64, slots)


def test_giving_back_twice_is_a_bug_that_shows() -> None:
    pool = StaticPool(8, 4)
    taken = pool.take("a", 0)
    pool.give_back(taken)
    with pytest.raises(ValueError, match="free already"):
        pool.give_back(taken)
