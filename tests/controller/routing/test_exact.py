"""Policy ``exact``: the best of its space, with a bound, and what it says of other policies."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller.errors import RoutingError
from ina.controller.routing.bounds import cut_bound
from ina.controller.routing.candidates import candidates_of
from ina.controller.routing.demand import Demand
from ina.controller.routing.plan import Plan, PlannedTree, Stripe
from ina.controller.routing.policies.exact import Exact
from ina.controller.routing.policies.grid import Grid
from ina.controller.routing.policy import Situation
from ina.controller.routing.stripes import Choices
from ina.fabric.shapes import fat_tree, leaf_spine
from tests.controller.routing.drawn import (
    HOST_S,
    any_situation,
    network_of,
    some_jobs,
    step_s,
    three_switches,
    with_others,
)
from tests.selection import LONG, examples


@pytest.mark.parametrize("seed", [0, 3, 9] if LONG else [3])
def test_points_are_the_best_of_all_there_are(seed: int) -> None:
    """Of one job, by trying all: each of five workers at each place that sums, ways as they are."""
    situation = three_switches(seed)
    job = Demand("job", situation.demands[0].hosts[:5], 1e8, stripes=1, server=3)
    situation, network = replace(situation, demands=(job,)), situation.network
    racks, way = job.places(network).tolist(), situation.ways.way
    best = np.inf
    for points in product(range(4), repeat=5):
        up = {it: way(it, 3) for it in set(points) - {3}}
        ways = {(rack, it): way(rack, it) for rack, it in zip(racks, points, strict=True)}
        tree = PlannedTree(3, up, np.array(points), ways)
        best = min(best, step_s(situation, Plan({"job": (Stripe(1.0, tree),)})))
    solved = Exact("grid", most_ways=1).solve(situation)
    assert step_s(situation, solved.plan) == pytest.approx(best, rel=1e-5)
    assert solved.is_optimal
    assert solved.bound.seconds == pytest.approx(best, rel=1e-5)


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(seed=st.integers(1000, 100_000), has_others=st.booleans())
def test_points_of_any_network(seed: int, has_others: bool) -> None:
    situation = any_situation(seed)
    try:
        if has_others:
            situation = with_others(situation)
        solved = Exact("grid", limit_s=10.0).solve(situation)
    except RoutingError:
        return
    best, bound = step_s(situation, solved.plan), Grid().bound(situation)
    assert bound.seconds <= solved.bound.seconds * (1 + 1e-5)
    assert solved.bound.seconds <= best * (1 + 1e-9)
    assert best <= step_s(situation, Grid().plan(situation)) * (1 + 1e-5)


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(seed=st.integers(1000, 100_000), stripes=st.sampled_from([1, 4]), has_others=st.booleans())
def test_trees_of_any_network(seed: int, stripes: int, has_others: bool) -> None:
    situation = any_situation(seed, stripes=stripes)
    try:
        if has_others:
            situation = with_others(situation)
        solved = Exact(limit_s=10.0).solve(situation)
    except RoutingError:
        return
    best = step_s(situation, solved.plan)
    assert solved.bound.seconds <= best * (1 + 1e-9)
    assert cut_bound(situation.network, situation.demands).seconds <= best * (1 + 1e-9)


def chosen(situation: Situation, orders: int) -> float:
    """Of the trees that prices choose, the best of so many orders of the stripes."""
    candidates = [candidates_of(situation.ways, it) for it in situation.demands]
    goal, found = cut_bound(situation.network, situation.demands), []
    for order in range(orders):
        choices = Choices(situation.network)
        for it in candidates:
            choices.add(it)
        rng = np.random.default_rng(order) if order else None
        choices.improve(goal.seconds, rng=rng)
        found.append(step_s(situation, choices.plan()))
    return min(found)


@pytest.mark.parametrize("processing", [np.inf, 4.0, 2.0] if LONG else [np.inf, 2.0])
def test_prices_choose_as_good_trees_with_one_stripe(processing: float) -> None:
    """In one order mostly, in the best of ten always."""
    network, first = network_of(fat_tree(4), processing), []
    for seed in range(6):
        situation = Situation.of(
            network, some_jobs(network, 4, seed=seed, workers=(2, 6), stripes=1)
        )
        best = step_s(situation, Exact().plan(situation))
        first.append(chosen(situation, 1) / best)
        assert chosen(situation, 10) == pytest.approx(best, rel=1e-5)
    assert min(first) >= 1 - 1e-5
    assert np.mean(first) < 1.25


def test_stripes_may_have_unlike_trees() -> None:
    network = network_of(leaf_spine(2, 2, 4))
    jobs = some_jobs(network, 3, seed=1, workers=(2, 2), stripes=1)
    jobs = tuple(
        replace(it, hosts=(number, number + 4)) for number, it in enumerate(jobs)
    )  # each spans both racks
    one = Situation.of(network, jobs)
    two = Situation.of(network, [replace(it, stripes=2) for it in jobs])
    assert step_s(one, Exact().plan(one)) == pytest.approx(2 * HOST_S)
    assert step_s(two, Exact().plan(two)) == pytest.approx(1.5 * HOST_S)


def test_slots_keep_jobs_apart() -> None:
    network = network_of(leaf_spine(2, 3, 2))
    network = network.with_slots(np.where(np.arange(len(network)) < 3, 16, 8))
    hosts = ((0, 2, 4), (1, 3, 5))
    jobs = [Demand(f"job{it}", hosts[it], 1e8, slots=8, stripes=4) for it in range(2)]
    situation = Situation.of(network, jobs)
    plan = Exact().plan(situation)
    assert step_s(situation, plan) == pytest.approx(HOST_S)
    none = network.with_slots(np.where(np.arange(len(network)) < 3, 8, 0))
    with pytest.raises(RoutingError):
        Exact().plan(Situation.of(none, jobs))


def test_what_is_too_large_is_refused() -> None:
    situation = three_switches(0)
    for space in ("trees", "grid"):
        with pytest.raises(RoutingError, match=r"columns: it solves up to 1$"):
            Exact(space, largest=1).plan(situation)
    with pytest.raises(RoutingError, match="space 'stars': want trees or grid"):
        Exact("stars").plan(situation)
