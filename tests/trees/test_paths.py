"""Paths: as many bits for a node's children as it needs, and whether a packet has room for two."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.errors import InvalidInputError
from ina.protocol.spec import MAX_WORKERS, OWNER_BITS, PATH_BITS, index_bits, path_of
from ina.trees.tree import Node, Tree, single

NOBODY = (1 << PATH_BITS) - 1


def grown(draw: st.DrawFn, most: int, levels: int) -> Tree:
    """At most ``levels`` levels of at most ``most`` children each; ranks are dealt at random."""
    nodes: list[Node] = []
    counts: list[int] = []

    def grow(parent: str | None, level: int) -> str:
        name, at = f"s{len(nodes)}", len(nodes)
        nodes.append(Node(name, parent=parent))
        fan_in = draw(st.integers(1, most))
        deep = draw(st.integers(0, min(fan_in, 2))) if level + 1 < levels else 0
        counts.append(fan_in - deep)
        nodes[at] = replace(nodes[at], nodes=tuple(grow(name, level + 1) for _ in range(deep)))
        return name

    grow(None, 0)
    ranks = draw(st.permutations(range(sum(counts))))
    for at, count in enumerate(counts):
        nodes[at] = replace(nodes[at], ranks=tuple(ranks[:count]))
        ranks = ranks[count:]
    return Tree(tuple(nodes))


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    most, levels = draw(st.sampled_from([(1, 4), (2, 4), (4, 4), (9, 3), (MAX_WORKERS, 2)]))
    return grown(draw, most, levels)


def spine(*fan_ins: int) -> Tree:
    """A node a level, each with so many children: the next one, and else ranks."""
    nodes: list[Node] = []
    ranks = iter(range(sum(fan_ins)))
    for level, fan_in in enumerate(fan_ins):
        below = (f"s{level + 1}",) if level + 1 < len(fan_ins) else ()
        own = tuple(next(ranks) for _ in range(fan_in - len(below)))
        nodes.append(Node(f"s{level}", own, below, parent=f"s{level - 1}" if level else None))
    return Tree(tuple(nodes))


def ranks_below(tree: Tree, node: Node) -> set[int]:
    return set(node.ranks).union(*(ranks_below(tree, tree[name]) for name in node.nodes))


def children(tree: Tree, node: Node) -> list[set[int]]:
    return [*({rank} for rank in node.ranks), *(ranks_below(tree, tree[it]) for it in node.nodes)]


@given(trees())
def test_a_path_leads_down_to_its_rank_and_to_no_other(tree: Tree) -> None:
    everybody = ranks_below(tree, tree.root)
    paths = {rank: tree.path(rank) for rank in everybody}
    assert len(set(paths.values())) == len(paths)
    for node in tree:
        mask, ways = tree.path_mask(node), tree.children_ways(node)
        assert len(set(ways)) == node.fan_in
        assert NOBODY & mask not in ways
        for way, below in zip(ways, children(tree, node), strict=True):
            assert {rank for rank in everybody if paths[rank] & mask == way} == below


@given(trees())
def test_an_owner_is_a_path_that_fits_half(tree: Tree) -> None:
    everybody = ranks_below(tree, tree.root)
    longest = max(sum(tree.widths(node)) for node in tree)
    assert tree.has_shapes == (longest <= OWNER_BITS)
    if not tree.has_shapes:
        assert (tree.owners, tree.owner(0)) == ((), None)
        return
    assert [tree.owner(rank) for rank in sorted(everybody)] == list(tree.owners)
    assert [owner << OWNER_BITS for owner in tree.owners] == [
        tree.path(rank) for rank in sorted(everybody)
    ]
    for node in tree:
        mask, ways = tree.owner_mask(node), tree.owner_ways(node)
        for way, below in zip(ways, children(tree, node), strict=True):
            assert {rank for rank in everybody if tree.owners[rank] & mask == way} == below


@pytest.mark.parametrize(
    ("fan_ins", "bits"),
    [
        ((1,), 1),
        ((31,), 5),
        ((32,), 6),
        ((32, 32), 11),
        ((8, 8, 8), 10),
        ((1, 32, 32), 11),
        ((7, 8, 8, 8), 12),
        ((8, 8, 8, 8), 13),
        ((3, 1, 32, 32), 13),
    ],
)
def test_how_many_bits_a_path_takes(fan_ins: tuple[int, ...], bits: int) -> None:
    tree = spine(*fan_ins)
    lowest = tree.nodes[-1]
    assert sum(tree.widths(lowest)) == bits
    assert tree.has_shapes == (bits <= 12)
    assert len(tree.owners) == (len(ranks_below(tree, tree.root)) if bits <= 12 else 0)


def test_an_index_takes_as_many_bits_as_its_node_needs() -> None:
    assert [index_bits(n) for n in (1, 2, 3, 4, 5, 31, 32)] == [1, 1, 2, 2, 3, 5, 5]
    assert [index_bits(n, is_root=True) for n in (1, 2, 3, 4, 31, 32)] == [1, 2, 2, 3, 5, 6]
    assert single("s", 4).owners == (0x000, 0x200, 0x400, 0x600)


def test_paths_that_cannot_be() -> None:
    with pytest.raises(InvalidInputError, match=r"a path by child 4: children are 0\.\.3"):
        path_of((0, 4), (1, 2))
    with pytest.raises(InvalidInputError, match=r"a path by child 32: children are 0\.\.31"):
        path_of((32,), (6,))
    with pytest.raises(InvalidInputError, match="a path of 5 levels"):
        path_of((0,) * 5)
