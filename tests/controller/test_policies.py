"""Memory policies: what each promises, for any jobs, and against what is best."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller.config import JobsConfig
from ina.controller.memory.demand import Demand, StepModel, usable
from ina.controller.memory.policies import (
    RESIZING,
    Asked,
    Deadline,
    Equal,
    Jct,
    Policy,
    Priority,
    Static,
    least,
    policy_for,
)
from ina.controller.memory.resizes import (
    LAST,
    MOST,
    REFILL_S,
    Restraint,
    is_last,
    is_spent,
    restrained,
    settled,
)
from tests.selection import examples

LANE_BYTES_S = 256 / 20e-6
"""256 bytes a round trip of 20 us."""


def needs(lanes: float, compute_s: float = 1.0) -> StepModel:
    """Its communication hides behind its computation with so many packets in flight."""
    return StepModel(compute_s, compute_s, lanes * LANE_BYTES_S * compute_s, LANE_BYTES_S)


def job(name: str, lanes: float = 100.0, **more: object) -> Demand:
    return Demand(name, needs(lanes), **{"steps_left": 100.0, "floor": 4, **more})  # type: ignore[arg-type]


@st.composite
def demands(draw: st.DrawFn) -> list[Demand]:
    found = []
    for index in range(draw(st.integers(1, 6))):
        floor = 1 << draw(st.integers(1, 4))
        found.append(
            job(
                f"j{index}",
                draw(st.floats(0.1, 500)),
                steps_left=draw(st.floats(1, 1e6)),
                slots=draw(st.sampled_from([0, floor, 2 * floor, 8 * floor])),
                floor=floor,
                priority=draw(st.integers(-2, 2)),
                changes=draw(st.floats(0, MOST)),
                deadline_s=draw(st.none() | st.floats(-10, 1e6)),
                since_s=draw(st.floats(0, 100)),
            )
        )
    return found


@pytest.mark.parametrize("name", sorted(RESIZING))
@settings(max_examples=examples(100))
@given(jobs=demands(), spare=st.integers(0, 2000))
def test_what_runs_keeps_its_floor_and_nothing_is_given_twice(
    name: str, jobs: list[Demand], spare: int
) -> None:
    total = sum(it.floor for it in jobs if it.slots) + spare
    policy = RESIZING[name]()
    sizes = policy.sizes(jobs, total)
    assert sum(sizes.values()) <= total
    for it in jobs:
        got = sizes[it.name]
        assert got == usable(got)
        assert got <= it.useful
        assert got >= it.floor or (not it.slots and not got)
    waiting = [it for it in policy.order(jobs) if not sizes[it.name]]
    if waiting:  # no floor of a job fits that waits
        assert all(it.floor > total - sum(sizes.values()) for it in waiting[:1])
    kept = settled(jobs, sizes, total)
    assert sum(kept.values()) <= max(total, sum(it.slots for it in jobs))
    for it in jobs:
        low, high = sorted((it.slots, sizes[it.name]))
        assert low <= kept[it.name] <= high


@settings(max_examples=examples(100))
@given(jobs=demands(), total=st.integers(0, 2000))
def test_equal_gives_nobody_more_while_one_with_less_has_use_for_it(
    jobs: list[Demand], total: int
) -> None:
    sizes = Equal().sizes(jobs, total)
    free = total - sum(sizes.values())
    for one, other in itertools.permutations(jobs, 2):
        got, others = sizes[one.name], sizes[other.name]
        if 0 < got < one.useful and others > other.floor:
            # A level lower than the other's, or half of it, where the last doubling did not fit.
            assert got * 2 >= others
    for it in jobs:
        if 0 < sizes[it.name] < it.useful:
            assert sizes[it.name] > free


def best(jobs: Sequence[Demand], total: int) -> float:
    """The largest sum of rate / remaining that powers of two allow."""
    sizes = [[1 << i for i in range(2, 12) if 1 << i <= max(it.useful, 4)] for it in jobs]
    fitting = (choice for choice in itertools.product(*sizes) if sum(choice) <= total)
    return max(sum(it.value(n) for it, n in zip(jobs, choice, strict=True)) for choice in fitting)


def test_jct_comes_close_to_the_largest_sum_of_rate_to_remaining() -> None:
    chance = random.Random(1)
    ratios = []
    for _ in range(40):
        jobs = [
            job(f"j{i}", chance.uniform(5, 500), steps_left=10 ** chance.uniform(1, 4))
            for i in range(4)
        ]
        sizes = Jct().sizes(jobs, 1024)
        ratios.append(sum(it.value(sizes[it.name]) for it in jobs) / best(jobs, 1024))
    assert min(ratios) > 0.85
    assert sum(ratios) / len(ratios) > 0.99


def test_jct_serves_who_is_done_first() -> None:
    short, long = job("short", 100, steps_left=10), job("long", 100, steps_left=1000)
    assert Jct().sizes([long, short], 256) == {"short": 128, "long": 128}  # 200 are of use
    assert Jct().sizes([long, short], 280) == {"short": 256, "long": 16}
    assert [it.name for it in Jct().order([long, short])] == ["short", "long"]


def test_slots_that_a_job_has_count_ten_percent_more_with_it() -> None:
    one, other = job("one", 128, slots=256, steps_left=105), job("other", 128, slots=16)
    assert Jct().sizes([one, other], 280)["one"] == 256
    late = job("one", 128, slots=256, steps_left=115)
    assert Jct().sizes([late, other], 280)["other"] == 256


def test_deadline_gives_the_earliest_the_least_that_meets_it() -> None:
    # At 64 slots a step takes 100/32 s, at 32 twice as long.
    early = job("early", deadline_s=400.0)
    late = job("late", deadline_s=500.0)
    none = job("none", steps_left=1)
    assert (least(early), least(late), least(none)) == (64, 64, none.floor)
    assert Deadline().sizes([late, early, none], 132) == {"early": 64, "late": 64, "none": 4}
    # Where both cannot be met, the earliest is, and the rest goes by rate / remaining.
    sizes = Deadline().sizes([late, early, none], 100)
    assert (sizes["early"], sizes["none"]) == (64, 32)
    # One that cannot be met has no claim.
    hopeless = job("hopeless", deadline_s=99.0)
    assert least(hopeless) == 4
    assert Deadline().sizes([hopeless, early], 72)["early"] == 64


@pytest.mark.parametrize(
    ("slots", "deadline_s", "wanted"),
    [
        (0, 320.0, 128),  # 64 slots take 312.5 s, 3 % more are to be there
        (0, 322.0, 64),
        (64, 313.0, 64),  # what it has is enough as long as it is
        (64, 312.0, 128),
        (128, 340.0, 128),  # to shrink, 10 % are to be there
        (128, 344.0, 64),
    ],
)
def test_a_job_near_its_deadline_does_not_go_to_and_fro(
    slots: int, deadline_s: float, wanted: int
) -> None:
    assert least(job("a", slots=slots, deadline_s=deadline_s)) == wanted


@settings(max_examples=examples(100))
@given(jobs=demands(), total=st.integers(100, 2000))
def test_the_earliest_deadline_that_can_be_met_is_met(jobs: list[Demand], total: int) -> None:
    sizes = Deadline().sizes(jobs, total)
    floors = sum(it.floor for it in jobs)
    meetable = [it for it in jobs if it.deadline_s is not None and least(it) > it.floor]
    if not meetable or floors > total:
        return
    first = min(meetable, key=lambda it: (it.deadline_s, it.since_s, it.name))
    if least(first) - first.floor <= total - floors:
        assert first.deadline_s is not None
        assert first.left_s(sizes[first.name]) <= first.deadline_s


def test_priority_goes_down_to_the_floors_of_others() -> None:
    jobs = [job("low", priority=0, slots=256), job("high", priority=5), job("higher", priority=9)]
    assert Priority().sizes(jobs, 300) == {"higher": 256, "high": 32, "low": 8}
    assert [it.name for it in Priority().order(jobs)] == ["higher", "high", "low"]


def test_static_and_asked_leave_what_runs_alone() -> None:
    jobs = [
        job("old", slots=64, since_s=0),
        job("new", asked=32, since_s=1),
        job("last", since_s=2),
    ]
    assert Static(128).sizes(jobs, 200) == {"old": 64, "new": 128, "last": 0}
    assert Asked(128).sizes(jobs, 200) == {"old": 64, "new": 32, "last": 0}


def test_what_a_job_asks_for_is_the_most_that_it_gets() -> None:
    assert job("a").useful == 256
    assert job("a", asked=100).useful == 64


def test_an_aggregator_carries_what_slots_do_not() -> None:
    alone = needs(100)
    helped = StepModel(1.0, 1.0, alone.bytes, LANE_BYTES_S, beside_bytes_per_s=50 * LANE_BYTES_S)
    assert alone.step_s(0) == float("inf")
    assert helped.step_s(0) == pytest.approx(2.0)
    assert helped.step_s(64) == pytest.approx(100 / 82)


def test_slots_are_of_use_that_bring_little_each_but_much_together() -> None:
    # Twice the slots bring less than 2 % while they are few, for the aggregator carries more.
    steps = StepModel(1.0, 1.0, 300 * LANE_BYTES_S, LANE_BYTES_S, math.inf, 250 * LANE_BYTES_S)
    assert steps.step_s(4) < 1.02 * steps.step_s(8)
    few = Demand("a", steps, 100.0, floor=4)
    assert few.useful == 128
    assert steps.step_s(128) == 1.0
    assert replace(few, asked=64).useful == 64


def test_a_change_that_brings_less_than_ten_percent_is_left() -> None:
    # 128 slots make a step 1.09 s, 256 make it 1.
    grows = job("a", 70, slots=128)
    assert settled([grows], {"a": 256}, 512) == {"a": 128}
    worse = job("a", 75, slots=128)
    assert settled([worse], {"a": 256}, 512) == {"a": 256}
    # Who has used up two changes is to gain 21 %.
    often = job("a", 75, slots=128, changes=2.0)
    assert settled([often], {"a": 256}, 512) == {"a": 128}


def test_only_as_many_shrink_as_somebody_needs() -> None:
    short = job("short", slots=128, steps_left=10)
    long = job("long", slots=128, steps_left=1000)
    new = job("new")
    wanted = {"short": 64, "long": 64, "new": 128}
    assert settled([short, long, new], wanted, 512) == {"short": 128, "long": 128, "new": 128}
    assert settled([short, long, new], wanted, 320) == {"short": 128, "long": 64, "new": 128}
    assert settled([short, long, new], wanted, 256) == wanted


def test_slots_of_a_job_that_has_changed_count_more_with_it() -> None:
    other = job("other", 128, slots=16)
    for changes, left, keeps in ((0, 105, True), (0, 115, False), (2, 115, True), (2, 140, False)):
        one = job("one", 128, slots=256, steps_left=left, changes=changes)
        assert (Jct().sizes([one, other], 280)["one"] == 256) is keeps


def test_changes_are_used_up_and_come_back() -> None:
    restraint = Restraint()
    for number in range(MOST):
        used = restraint.used(10.0 * number)
        assert not is_spent(used)
        assert is_last(used) == (number >= MOST - LAST)
        restraint.changed(10.0 * number)
    assert is_spent(restraint.used(100.0))
    assert is_spent(restraint.used(REFILL_S - 100.0))
    assert not is_spent(restraint.used(REFILL_S + 100.0))
    assert restraint.used(1e9) == 0.0


@pytest.mark.parametrize("name", sorted(RESIZING))
@settings(max_examples=examples(100))
@given(jobs=demands(), spare=st.integers(0, 2000))
def test_who_has_few_changes_left_does_not_shrink(
    name: str, jobs: list[Demand], spare: int
) -> None:
    jobs = [restrained(it) for it in jobs]
    total = sum(max(it.floor, it.slots) for it in jobs if it.slots) + spare
    sizes = settled(jobs, RESIZING[name]().sizes(jobs, total), total)
    for it in jobs:
        if is_last(it.changes):
            assert sizes[it.name] >= it.slots


@pytest.mark.parametrize(
    ("config", "policy"),
    [
        (JobsConfig(), "static"),
        (JobsConfig(sizing="equal"), "static"),
        (JobsConfig(sizing="asked"), "asked"),
        (JobsConfig(policy="asked"), "asked"),
        (JobsConfig(policy="jct"), "jct"),
        (JobsConfig(policy="equal"), "equal"),
    ],
)
def test_the_configuration_names_the_policy(config: JobsConfig, policy: str) -> None:
    found: Policy = policy_for(config, 64)
    assert found.name == policy
    assert found.resizes == config.resizes == (policy in RESIZING)
