"""Placement ``nearest``: trees over fabrics drawn by hand, and over random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller.errors import JobRequestError
from ina.controller.topology.fabric import Fabric, Link, Place
from ina.controller.topology.nearest import Nearest, tree_over
from ina.controller.topology.tree import Node, Tree, single
from ina.protocol.spec import MAX_LEVELS, MAX_WORKERS, MAX_WORLD_SIZE


@dataclass(frozen=True)
class At:
    """A worker's endpoint, as far as placement looks at it."""

    address: IPv4Address


def fabric(links: str, hosts: Mapping[str, str] | None = None) -> Fabric:
    """``"l1-s l2-s"``: each switch numbers its ports from 1 in the order of its links."""
    ports: dict[str, int] = {}
    made = []
    for text in links.split():
        one, other = text.split("-")
        for end in (one, other):
            ports[end] = ports.get(end, 0) + 1
        made.append(Link((one, other), (ports[one], ports[other])))
    places = {
        IPv4Address(address): Place(switch, 100 + number)
        for number, (address, switch) in enumerate((hosts or {}).items())
    }
    return Fabric(tuple(ports), made, places)


LEAF_SPINE = "leaf1-spine leaf2-spine leaf3-spine"


def test_two_racks_meet_in_the_spine() -> None:
    tree = tree_over(fabric(LEAF_SPINE), {"leaf1": [0, 1, 2], "leaf2": [3, 4]})
    assert tree == Tree(
        (
            Node("spine", (), ("leaf1", "leaf2"), (1, 2)),
            Node("leaf1", (0, 1, 2), parent="spine", parent_port=1),
            Node("leaf2", (3, 4), parent="spine", parent_port=1),
        )
    )


def test_one_rack_is_one_switch_whose_indices_are_the_ranks() -> None:
    assert tree_over(fabric(LEAF_SPINE), {"leaf2": [2, 0, 1]}) == single("leaf2", 3)


def test_a_rack_of_one_adds_nothing_up() -> None:
    tree = tree_over(fabric(LEAF_SPINE), {"leaf1": [0, 3], "leaf2": [1], "leaf3": [2]})
    assert tree == Tree(
        (
            Node("spine", (1, 2), ("leaf1",), (1,)),
            Node("leaf1", (0, 3), parent="spine", parent_port=1),
        )
    )
    assert tree.first_node(1).switch == "spine"


def test_a_worker_at_the_root() -> None:
    tree = tree_over(fabric(LEAF_SPINE), {"spine": [2], "leaf1": [0, 1], "leaf3": [3, 4]})
    assert tree.root == Node("spine", (2,), ("leaf1", "leaf3"), (1, 3))


def test_three_levels_and_a_switch_that_only_forwards() -> None:
    pods = fabric("l1-s1 l2-s1 l3-s2 l4-s2 s1-core s2-core")
    tree = tree_over(pods, {"l1": [0, 1], "l2": [2, 3], "l3": [4, 5], "l4": [6]})
    assert [(node.switch, node.parent, tree.level(node)) for node in tree] == [
        ("s1", None, 3),  # as many links to all as from the core, and none is farther
        ("l1", "s1", 1),
        ("l2", "s1", 1),
        ("s2", "s1", 2),
        ("l3", "s2", 1),
    ] or [node.switch for node in tree] == ["core", "s1", "l1", "l2", "s2", "l3"]
