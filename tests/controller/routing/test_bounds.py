"""Bounds by hand, and that tops of racks which forward let every contribution out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ina.controller.routing.bounds import cut_bound, parts_of
from ina.controller.routing.demand import Demand
from ina.fabric.shapes import leaf_spine
from tests.controller.routing.networks import fat_tree_network, network_of


def test_a_racks_uplinks_bound_the_jobs_that_leave_it() -> None:
    network = network_of(leaf_spine(2, 3, 4), up=0.25, host=1.0)
    jobs = [Demand("one", (0, 1, 4)), Demand("two", (2, 8)), Demand("inside", (0, 3))]
    bound = cut_bound(network, jobs)
    assert bound.seconds == pytest.approx(2 / 0.5)  # two jobs leave by two cables of a quarter
    assert bound.what == "cables of leaf1"


def test_a_host_of_two_ranks_bounds() -> None:
    network = network_of(leaf_spine(2, 2, 2), up=10.0)
    bound = cut_bound(network, [Demand("one", (0, 0, 2), step_bytes=3.0)])
    assert bound.seconds == pytest.approx(6.0)
    assert bound.what == "host 10.0.0.1"


def test_a_top_that_forwards_lets_every_contribution_out() -> None:
    network = network_of(leaf_spine(2, 2, 4), up=1.0, host=10.0)
    job = Demand("one", (0, 1, 2, 4))
    assert cut_bound(network, [job]).seconds == pytest.approx(0.5)
    sums = network.sums.copy()
    sums[network.place("leaf1")] = False
    assert cut_bound(replace(network, sums=sums), [job]).seconds == pytest.approx(1.5)


def test_what_all_places_sum_bounds() -> None:
    network = network_of(leaf_spine(2, 2, 4), up=100.0, host=100.0)
    network = replace(network, processing=np.full(len(network), 0.5))
    bound = cut_bound(network, [Demand("one", tuple(range(8)))])
    assert bound.seconds == pytest.approx(8 / 2)
    assert bound.what == "what all places sum"


def test_pods_are_parts_of_a_fat_tree() -> None:
    network = fat_tree_network(4)
    racks, pods, all_of_it = (np.bincount(parts[parts >= 0]) for parts in parts_of(network))
    assert racks.tolist() == [1] * 8
    assert pods.tolist() == [4] * 4
    assert all_of_it.tolist() == [20]


def test_no_jobs_take_no_time() -> None:
    assert cut_bound(fat_tree_network(4), []).seconds == 0.0
