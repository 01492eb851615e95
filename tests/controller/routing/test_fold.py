"""Networks folded: what is alike is one place, what it leaves is a tree."""

from __future__ import annotations

import numpy as np
import pytest

from ina.controller.routing.fold import fold_of
from ina.controller.routing.loads import no_loads
from ina.controller.routing.network import NO_LIMIT, Network
from ina.fabric.shapes import fat_tree, leaf_spine
from tests.controller.routing.drawn import RATE, network_of, three_switches


def test_a_fat_tree_has_its_racks_its_pods_and_a_core() -> None:
    network = network_of(fat_tree(8), processing=4)
    fold = fold_of(network)
    assert fold is not None
    folded = fold.network
    assert len(folded) == 8 * 4 + 8 + 1
    assert sorted(fold.members) == [1] * 32 + [4] * 8 + [16]
    assert len(folded.rates) == len(folded) - 1
    assert sorted(set(folded.rates / RATE)) == [4.0, 16.0]
    assert sorted(folded.processing / RATE) == [4.0] * 32 + [16.0] * 8 + [64.0]
    assert len(set(folded.names)) == len(folded)
    core = int(fold.class_of[network.place("core0-0")])
    assert folded.names[core] == "core0-0+15"


def test_failures_take_from_sums_and_may_part_a_pod() -> None:
    network = network_of(leaf_spine(4, 3, 2))
    fold = fold_of(network.without(cables=[0, 5]))
    assert fold is not None
    assert sorted(fold.network.rates / RATE) == [3.0, 3.0, 4.0]
    # Racks of one pod that no aggregation switch joins any more are pods by themselves.
    network = network_of(fat_tree(4))
    dead = [
        network.cable_between[network.place(a), network.place(b)]
        for a, b in (("edge0-0", "agg0-0"), ("edge0-1", "agg0-1"))
    ]
    fold = fold_of(network.without(cables=dead))
    assert fold is not None
    assert fold.class_of[network.place("agg0-0")] != fold.class_of[network.place("agg0-1")]
    assert fold.class_of[network.place("agg1-0")] == fold.class_of[network.place("agg1-1")]


def test_a_server_and_what_nobody_counts_stay_what_they_are() -> None:
    network = Network.of(
        ["leaf0", "leaf1", "spine0", "spine1", "server"],
        [(leaf, spine, RATE) for leaf in ("leaf0", "leaf1") for spine in ("spine0", "spine1")]
        + [("leaf1", "server", RATE)],
        [("h0", "leaf0", RATE), ("h1", "leaf1", RATE)],
    )
    fold = fold_of(network)
    assert fold is not None
    assert set(fold.network.names) == {"leaf0", "leaf1", "server", "spine0+1"}
    assert (fold.network.slots == NO_LIMIT).all()
    assert np.isinf(fold.network.processing).all()


def test_loads_are_summed() -> None:
    network = network_of(leaf_spine(2, 2, 1))
    fold = fold_of(network)
    assert fold is not None
    loads = no_loads(network)
    loads.cables[:] = [1.0, 2.0, 3.0, 4.0]
    assert fold.loads(loads).cables.sum() == pytest.approx(10.0)
    assert sorted(fold.loads(loads).cables) == [3.0, 7.0]


def test_tops_of_racks_in_a_ring_do_not_fold() -> None:
    assert fold_of(three_switches(1).network) is None
