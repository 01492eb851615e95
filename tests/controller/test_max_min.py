"""Weighted max-min shares: what makes them such, and what growing step by step finds."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ina.controller.windows.caps import Demand, max_min
from tests.selection import examples

THINGS = "abcd"
PARTS = st.sampled_from([0.5, 1.0, 2.0])


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Demand[str]], dict[str, float]]:
    """Jobs that each use one thing or more, all of which are limited."""
    capacities = {thing: draw(st.sampled_from([1.0, 4.0, 10.0, 25.0])) for thing in THINGS}
    demands = {
        f"job{number}": Demand(
            draw(st.sampled_from([0.5, 1.0, 3.0])),
            draw(st.dictionaries(st.sampled_from(THINGS), PARTS, min_size=1)),
        )
        for number in range(draw(st.integers(1, 5)))
    }
    return demands, capacities


def used(demands: Mapping[str, Demand[str]], rates: Mapping[str, float], thing: str) -> float:
    return sum(it.uses.get(thing, 0.0) * rates[job] for job, it in demands.items())


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_nothing_is_overfull_and_each_has_a_full_bottleneck_where_it_has_most(
    case: tuple[dict[str, Demand[str]], dict[str, float]],
) -> None:
    demands, capacities = case
    shares = max_min(demands, capacities)
    rates = {job: share.rate for job, share in shares.items()}
    levels = {job: rates[job] / demands[job].weight for job in demands}
    for thing, capacity in capacities.items():
        assert used(demands, rates, thing) <= capacity * (1 + 1e-9)
    for job, share in shares.items():
        scarce = share.bottleneck
        assert scarce is not None
        assert scarce in demands[job].uses
        assert used(demands, rates, scarce) == pytest.approx(capacities[scarce])
        users = [other for other, it in demands.items() if scarce in it.uses]
        event(f"{len(users)} at a bottleneck")
        assert levels[job] >= max(levels[other] for other in users) * (1 - 1e-9)


STEP = 1 / 128


def by_steps(
    demands: Mapping[str, Demand[str]], capacities: Mapping[str, float]
) -> dict[str, float]:
    """Each in turn has a little more, for its weight, until it would make something overfull."""
    rates = dict.fromkeys(demands, 0.0)
    left = dict(capacities)
    growing = set(demands)
    while growing:
        for job in sorted(growing):
            more = STEP * demands[job].weight
            uses = demands[job].uses
            if any(part * more > left[thing] for thing, part in uses.items()):
                growing.remove(job)
                continue
            rates[job] += more
            for thing, part in uses.items():
                left[thing] -= part * more
    return rates


@settings(max_examples=15, deadline=None)
@given(cases())
def test_growing_step_by_step_comes_to_the_same(
    case: tuple[dict[str, Demand[str]], dict[str, float]],
) -> None:
    demands, capacities = case
    wanted = by_steps(demands, capacities)
    for job, share in max_min(demands, capacities).items():
        # Who stops for want of a last step, up to 6 of a thing, leaves that to the others, who
        # take up to 4 times as much of another thing for it, and so on.
        assert share.rate == pytest.approx(wanted[job], abs=100 * STEP)


@settings(max_examples=examples(60), deadline=None)
@given(cases(), st.data())
def test_who_leaves_lets_the_least_have_no_less(
    case: tuple[dict[str, Demand[str]], dict[str, float]], data: st.DataObject
) -> None:
    """One may well have less, where another that shares with it may have more elsewhere; but none
    less than the least had, and none ever less than its part of the tightest thing."""
    demands, capacities = case
    gone = data.draw(st.sampled_from(sorted(demands)))
    rest = {job: it for job, it in demands.items() if job != gone}
    before, after = max_min(demands, capacities), max_min(rest, capacities)
    former = sorted(before[job].rate / it.weight for job, it in rest.items())
    now = sorted(after[job].rate / it.weight for job, it in rest.items())
    changed = [(a, b) for a, b in zip(former, now, strict=True) if not math.isclose(a, b)]
    assert not changed or changed[0][1] > changed[0][0]
    for job, it in rest.items():
        parts = [
            capacities[thing] / sum(o.weight * o.uses.get(thing, 0.0) for o in rest.values())
            for thing in it.uses
        ]
        assert after[job].rate >= it.weight * min(parts) * (1 - 1e-9)


def test_a_link_is_shared_by_weight_and_what_one_cannot_use_is_the_others() -> None:
    demands = {
        "light": Demand(1.0, {"link": 1.0}),
        "heavy": Demand(3.0, {"link": 1.0}),
        "narrow": Demand(1.0, {"link": 1.0, "slots": 1.0}),
    }
    shares = max_min(demands, {"link": 100.0, "slots": 4.0})
    assert {job: it.rate for job, it in shares.items()} == {
        "light": 24.0, "heavy": 72.0, "narrow": 4.0,
    }  # fmt: skip
    assert shares["narrow"].bottleneck == "slots"
    assert shares["light"].bottleneck == "link"


def test_who_uses_nothing_that_is_limited_has_no_limit() -> None:
    shares = max_min({"a": Demand(1.0, {"x": 1.0}), "b": Demand(1.0, {})}, {"y": 1.0})
    assert all(it.rate == math.inf and it.bottleneck is None for it in shares.values())
