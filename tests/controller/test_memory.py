"""Slot ranges: they never overlap, and what is given back can be had again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ina.controller.config import JobsConfig
from ina.controller.errors import NoRoomError
from ina.controller.jobs import placement
from ina.controller.memory import FirstFit, StaticPool, allocator_for
from ina.controller.memory.allocators import Buddies
from ina.controller.switches.capacity import Capacity
from ina.trees.errors import JobRequestError
from ina.trees.forest import forest_of
from ina.trees.slots import SlotRange
from ina.trees.tree import single


class Pools(RuleBasedStateMachine):
    """Any sequence of take, claim, give back and block."""

    @initialize(
        total=st.integers(4, 40), half=st.integers(1, 8), asked=st.booleans(), data=st.data()
    )
    def start(self, total: int, half: int, asked: bool, data: st.DataObject) -> None:
        size = min(2 * half, total - total % 2)
        self.limit = total - total % 2 if asked else size
        kinds = (FirstFit, Buddies)
        kind = data.draw(st.sampled_from(kinds)) if asked else StaticPool
        self.pool = kind(total, size)
        self.total = total
        self.default = size
        self.taken: list[SlotRange] = []
        self.blocked: list[range] = []

    def busy(self) -> set[int]:
        return {slot for taken in self.taken for slot in range(taken.first, taken.end)}

    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        wanted = 2 * data.draw(st.integers(0, self.limit // 2))
        room = self.pool.fits("j", wanted, [])
        try:
            taken = self.pool.take("j", wanted)
        except NoRoomError:
            assert not room
            assert self.taken or self.blocked  # an empty switch has room for whatever is granted
            return
        assert room
        assert taken.slots == (wanted or self.default)
        assert taken.slots <= taken.reserved == self.pool.cost("j", wanted)
        new = set(range(taken.first, taken.end))
        assert not new & self.busy()
        assert not any(new & set(blocked) for blocked in self.blocked)
        assert all(0 <= slot < self.total for slot in new)
        self.taken.append(taken)

    @rule(half=st.integers(1, 20))
    def take_range(self, half: int) -> None:
        blocked = {slot for slots in self.blocked for slot in slots}
        free = set(range(self.total)) - self.busy() - blocked
        size = min(2 * half, self.total - self.total % 2)
        room = any(free.issuperset(range(at, at + size)) for at in range(self.total))
        try:
            taken = self.pool.take_range("j", size)
        except NoRoomError:
            assert not room
            return
        assert (taken.slots, taken.reserved) == (size, size)
        assert free.issuperset(range(taken.first, taken.end))
        self.taken.append(taken)

    @rule(first=st.integers(0, 40), half=st.integers(1, 8))
    def claim(self, first: int, half: int) -> None:
        wanted = SlotRange(first, 2 * half, 2 * half)
        slots = set(range(wanted.first, wanted.end))
        if slots & self.busy() or wanted.end > self.total:
            with pytest.raises(NoRoomError, match="in use already"):
                self.pool.claim(wanted)
        else:
            self.pool.claim(wanted)
            self.taken.append(wanted)

    @precondition(lambda self: bool(getattr(self, "taken", [])))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.taken) - 1))
        given = self.taken.pop(index)
        self.pool.give_back(given)
        if not any(set(range(given.first, given.end)) & set(b) for b in self.blocked):
            self.pool.claim(given)  # it is free
            self.pool.give_back(given)

    @rule(ranges=st.lists(st.tuples(st.integers(0, 45), st.integers(1, 9)), max_size=3))
    def block(self, ranges: list[tuple[int, int]]) -> None:
        self.blocked = [range(first, first + slots) for first, slots in ranges]
        self.pool.block(self.blocked)

    @invariant()
    def what_is_used_is_what_was_taken_or_blocked(self) -> None:
        if hasattr(self, "pool"):
            blocked = {slot for slots in self.blocked for slot in slots if slot < self.total}
            assert self.pool.used() == len(self.busy() | blocked)


TestPools = Pools.TestCase
TestPools.settings = settings(max_examples=100)


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


def test_refusals_of_what_was_asked_say_the_numbers() -> None:
    pool = FirstFit(16, 4)
    with pytest.raises(JobRequestError, match=r"'a': 18 slots: the switch has 16"):
        pool.take("a", 18)
    first, second = pool.take("a", 8), pool.take("b", 0)
    assert (first.first, second.first, second.slots) == (0, 8, 4)
    pool.block([range(14, 15)])
    with pytest.raises(NoRoomError, match=r"no 4 free ones.*\(13 of 16 are in use, 1 ranges are f"):
        pool.take("c", 4)
    pool.give_back(first)
    assert pool.take("c", 4).first == 0


def test_a_second_range_is_of_any_size_and_from_the_smallest_gap_that_has_it() -> None:
    pool = StaticPool(32, 8)
    for first, slots in ((4, 8), (14, 8), (24, 2)):  # gaps of 4, 2, 2 and 6
        pool.claim(SlotRange(first, slots, slots))
    assert pool.take_range("a", 4) == SlotRange(0, 4, 4)
    with pytest.raises(NoRoomError, match=r"'a': no 8 free slots are side by side: at most 6 are"):
        pool.take_range("a", 8)
    for slots in (0, 34):
        with pytest.raises(JobRequestError, match=f"'a': {slots} slots: a job has 2 to 32"):
            pool.take_range("a", slots)
    with pytest.raises(JobRequestError, match="not an even number"):
        pool.take_range("a", 5)


@pytest.mark.parametrize("slots", [0, 1, 7, 66])
def test_a_range_that_cannot_be_is_refused(slots: int) -> None:
    with pytest.raises(JobRequestError, match="even number"):
        StaticPool(64, slots)


@pytest.mark.parametrize("make", [lambda: FirstFit(16, 4), lambda: StaticPool(16, 4)])
def test_a_range_may_share_slots_with_one_of_the_job_s_own(
    make: Callable[[], FirstFit | StaticPool],
) -> None:
    pool = make()
    own, other = pool.take("j", 4), pool.take("k", 4)
    with pytest.raises(NoRoomError):
        pool.take_range("j", 10)
    with pytest.raises(NoRoomError):
        pool.take_range("j", 10, over=own)  # the other one is in between
    pool.give_back(other)
    wide = pool.take_range("j", 14, over=own)
    assert wide.first < own.end
    assert pool.used() == 14
    again = make()
    again.claim(wide)
    with pytest.raises(NoRoomError, match="in use already"):
        again.claim(own)
    again.claim(own, over=wide)
    again.give_back(wide)
    assert again.used() == 4
    pool.give_back(own)
    assert pool.used() == 14


def test_giving_back_twice_is_a_bug_that_shows() -> None:
    pool = StaticPool(8, 4)
    taken = pool.take("a", 0)
    pool.give_back(taken)
    with pytest.raises(ValueError, match="free already"):
        pool.give_back(taken)


@pytest.mark.parametrize(
    ("sizing", "count", "granted"),
    [("fixed", 16, 512), ("asked", 16, 512), ("equal", 16, 512), ("equal", 3, 2730)],
)
def test_the_configuration_names_the_policy(
    sizing: Literal["fixed", "equal", "asked"], count: int, granted: int
) -> None:
    pool = allocator_for(JobsConfig(sizing=sizing, slots=512, count=count), 8192)
    assert pool.take("j", 0).slots == granted


def test_equal_shares_are_as_many_as_configured() -> None:
    pool = allocator_for(JobsConfig(sizing="equal", count=3), 8192)
    for name in "abc":
        pool.take(name, 0)
    with pytest.raises(NoRoomError):
        pool.take("d", 0)


@pytest.mark.parametrize(
    ("slots", "max_window", "window"),
    [(2, 0, 1), (6, 0, 2), (510, 0, 128), (512, 0, 256), (512, 100, 100), (6, 100, 2)],
)
def test_a_window_is_a_power_of_two_of_lanes_or_what_queues_bear(
    slots: int, max_window: int, window: int
) -> None:
    capacities = {"s": Capacity(FirstFit(8192, 512), max_window=max_window)}
    had = {"s": SlotRange(0, slots, slots)}
    assert placement.window(forest_of(single("s", 2)), had, capacities) == window
