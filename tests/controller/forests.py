"""Forests over two leaves and two spines, as tests have them, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

from ina.protocol.spec import MAX_LEVELS
from ina.trees.forest import MAX_PARTS, Forest
from ina.trees.tree import Node, Tree

LEAVES = ("leaf1", "leaf2")
SECOND_SPINE = "spine2"
UPLINKS = {"spine": 9, SECOND_SPINE: 10}
"""By spine: each leaf's port towards it."""


def over(spine: str, leaves: Sequence[str] = LEAVES) -> Tree:
    """Leaves with two ranks each, below a spine."""
    below = (
        Node(name, (2 * at, 2 * at + 1), parent=spine, parent_port=UPLINKS[spine])
        for at, name in enumerate(leaves)
    )
    return Tree((Node(spine, (), tuple(leaves), tuple(range(1, 1 + len(leaves)))), *below))


ONE_TO_THREE = Forest((over("spine"), over(SECOND_SPINE)), (1, 3))
AT_A_SPINE = Tree(
    (
        Node("spine", (0, 1), ("leaf2",), (2,), rank_ports=(1, 1)),
        Node("leaf2", (2, 3), parent="spine", parent_port=9),
    )
)
"""The workers behind leaf1 send to the spine, past it."""


@st.composite
def shares_of(draw: st.DrawFn, trees: int) -> tuple[int, ...]:
    """That are a power of two together."""
    parts = draw(st.sampled_from([it for it in (1, 2, 4, 8, MAX_PARTS) if it >= trees]))
    cuts = draw(st.permutations(range(1, parts)))[: trees - 1]
    ends = [0, *sorted(cuts), parts]
    return tuple(end - begin for begin, end in pairwise(ends))


@st.composite
def trees(draw: st.DrawFn, ranks: int) -> Tree:
    """Over some of 6 switches, with another one as its root each time."""
    names = draw(st.permutations([f"s{number}" for number in range(6)]))
    names = names[: draw(st.integers(1, len(names)))]
    depth, parents = {names[0]: 0}, {}
    for name in names[1:]:
        parents[name] = draw(st.sampled_from([it for it in depth if depth[it] < MAX_LEVELS - 1]))
        depth[name] = depth[parents[name]] + 1
    at = {rank: draw(st.sampled_from(names)) for rank in range(ranks)}
    below = {name: tuple(it for it in parents if parents[it] == name) for name in names}
    return Tree(
        tuple(
            Node(
                name,
                tuple(rank for rank, node in at.items() if node == name),
                below[name],
                tuple(range(len(below[name]))),
                parents.get(name),
            )
            for name in names
        )
    )


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """Of up to 5 trees."""
    ranks = draw(st.integers(1, 6))
    found = draw(st.lists(trees(ranks), min_size=1, max_size=5))
    return Forest(tuple(found), draw(shares_of(len(found))))
