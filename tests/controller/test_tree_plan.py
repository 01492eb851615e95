"""What a job needs on each switch of a tree is what the conformance cases write for such a node."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller.switches.plan import plan_job
from ina.p4 import names
from ina.protocol.addresses import mac_of
from ina.tables.values import Entry
from ina.testing import state
from ina.trees.tree import Tree
from tests.selection import examples
from tests.worlds.fakes.placed import TREES, addresses, as_model, job_over, plain, racks


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: f"{len(tree)} switches")
def test_every_node_gets_what_the_conformance_cases_write(tree: Tree) -> None:
    job = job_over(tree)
    for node in tree:
        plan = plan_job(job, node.switch, addresses(tree))
        ours = Counter(plain(item) for stage in plan.stages for item in stage)
        theirs = Counter(plain(item) for item in state.job_state(as_model(job, node.switch)))
        assert ours == theirs, node.switch
        assert tuple(plan.endpoints) == node.ranks


def test_members_come_last_and_neighbours_have_their_macs() -> None:
    tree = racks(2, 1)
    plan = plan_job(job_over(tree), "leaf0", addresses(tree))
    assert all(isinstance(it, Entry) and it.table == names.MEMBERS for it in plan.stages[-1])
    assert [dict(it.match)["kind"] for it in plan.switches] == [2]  # the parent's results
    (up,) = [
        dict(item.params)
        for item in plan.stages[0]
        if isinstance(item, Entry) and ("worker", 254) in item.match
    ]
    assert up["dst_mac"] == mac_of(IPv4Address("10.9.0.1"))


@settings(max_examples=examples(100))
@given(st.lists(st.integers(1, 32), min_size=2, max_size=32), st.integers(0, 0))
def test_each_rank_has_a_way_of_its_own(sizes: list[int], at_root: int) -> None:
    tree = racks(*sizes, at_root=at_root)
    ranks = [rank for node in tree for rank in node.ranks]
    paths = {tree.path(rank) for rank in ranks}
    assert len(paths) == len(ranks) == sum(sizes)
    for rank in ranks:
        leaf = tree.first_node(rank)
        assert tree.path(rank) & tree.path_mask(leaf) in tree.children_ways(leaf)
        above = tree.root
        assert tree.path(rank) & tree.path_mask(above) in tree.children_ways(above)
