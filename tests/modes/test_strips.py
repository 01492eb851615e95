"""Rows of receivers: hop by hop, each worker gets what it wants, and nothing that nobody wants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ina.modes.strips import strips
from ina.protocol.spec import MAX_WORKERS, PARENT, Shape
from ina.protocol.strips import KEEPS
from ina.trees.tree import Node, Tree, single, with_aggregator

RACKS = Tree(
    (
        Node("spine", (4,), ("leaf0", "leaf1"), (1, 2)),
        Node("leaf0", (0, 2), parent="spine"),
        Node("leaf1", (3, 1), parent="spine"),
    )
)
THREE_LEVELS = Tree(
    (
        Node("top", (), ("left", "right"), (1, 2)),
        Node("left", (0,), ("below", "beside"), (1, 2), parent="top"),
        Node("right", (1, 2, 3), (), parent="top"),
        Node("below", (4, 5), (), parent="left"),
        Node("beside", (6, 7), (), parent="left"),
    )
)
TREES = {
    "one worker": single("s", 1),
    "a star": single("s", 5),
    "a full star": single("s", MAX_WORKERS),
    "racks, and a worker at the root": RACKS,
    "three levels": THREE_LEVELS,
}
SHAPES = (Shape.SUM, Shape.SCATTER, Shape.GATHER)


def gets(shape: Shape, worker: int, owner: int) -> bool:
    """Whether a worker wants values."""
    return shape == Shape.SUM or (shape == Shape.SCATTER) == (worker == owner)


def below(tree: Tree, node: Node) -> set[int]:
    """The workers below a node."""
    return set(node.ranks).union(*(below(tree, tree[it]) for it in node.nodes))


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize("shape", SHAPES)
def test_results_have_values_for_those_who_want_some(tree: Tree, shape: Shape) -> None:
    for owner, path in enumerate(tree.owners):
        for node in tree:
            for index in range(node.fan_in):
                is_stripped = strips(tree, node, index).take(path, shape)
                if index < len(node.ranks):
                    reached = {node.ranks[index]}
                else:
                    reached = below(tree, tree[node.nodes[index - len(node.ranks)]])
                wanted = any(gets(shape, rank, owner) for rank in reached)
                # A switch cannot tell whether the owner has others beside it.
                is_owners = shape == Shape.GATHER and owner in reached and index >= len(node.ranks)
                assert is_stripped == (not wanted and not is_owners)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_sums_go_up_with_values_but_what_is_gathered_elsewhere(tree: Tree) -> None:
    for owner, path in enumerate(tree.owners):
        for node in tree.nodes[1:]:
            up = strips(tree, node, PARENT)
            assert not up.take(path, Shape.SUM)
            assert not up.take(path, Shape.SCATTER)
            assert up.take(path, Shape.GATHER) == (owner not in below(tree, node))


def test_what_shares_its_slots_sends_up_all_that_it_holds() -> None:
    shared = with_aggregator(RACKS, Node("aggregator", (), ("spine",), (1,)), 9)
    of_parents = [strips(shared, node, PARENT) for node in shared.nodes[1:]]
    assert of_parents == [KEEPS] * 3
    leaf = shared["leaf0"]
    path = shared.owners[2]
    assert [strips(shared, leaf, it).take(path, Shape.SCATTER) for it in (0, 1)] == [True, False]


def test_a_tree_with_longer_paths_has_sums_alone() -> None:
    nodes = list(THREE_LEVELS)
    ranks = iter(range(5 * MAX_WORKERS))
    wide = [replace(node, ranks=tuple(next(ranks) for _ in range(29))) for node in nodes]
    tree = Tree(tuple(wide))
    assert not tree.has_shapes
    assert {strips(tree, node, it) for node in tree for it in range(node.fan_in)} == {KEEPS}
